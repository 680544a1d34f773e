let progress: Signal<Double> = missing()
