let signal: Signal<(String, Int)> = missing()
let work: CallQueue = missing()
