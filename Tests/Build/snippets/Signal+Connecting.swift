let signal: Signal<(String, Int)> = missing()
let fractions: Signal<Double> = missing()
