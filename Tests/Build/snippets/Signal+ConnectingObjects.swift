let signal: Signal<Double> = missing()
