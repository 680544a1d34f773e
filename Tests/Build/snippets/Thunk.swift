import Glibc
let start: UnsafeMutableRawPointer = missing()
let (count, size) = (0, 0)
