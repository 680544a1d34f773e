// SPDX-License-Identifier: Apache-2.0

/// A caller's description of an interface; borrowed.
package struct InterfaceDescription {
  package let name: UnsafePointer<CChar>?
  package let version: UInt32
  package let count: UInt32
  package let methods: UnsafePointer<MethodDescription>?

  package init(
    name: UnsafePointer<CChar>?, version: UInt32, count: UInt32,
    methods: UnsafePointer<MethodDescription>?
  ) {
    self.name = name
    self.version = version
    self.count = count
    self.methods = methods
  }

  package static let methodLimit: UInt32 = 256

  /// What a caller that finds nobody to call goes by.
  package func defaultDisposition(of method: UInt32) -> Int64 {
    guard method < count, let methods else { return 0 }
    return methods[Int(method)].absentDisposition
  }
}

/// One method.
///
/// The layout is that of `cbr_method`.
package struct MethodDescription {
  package var name: UnsafePointer<CChar>?
  package var flags: UInt32
  package var defaultDisposition: Int32

  package static let required: UInt32 = 1
  package static let hasDefault: UInt32 = 2

  /// What stands for its answer where it is absent.
  package var absentDisposition: Int64 {
    flags & Self.hasDefault != 0 ? Int64(defaultDisposition) : 0
  }
}

/// An interface as a registry knows it.
///
/// It lives as long as the registry, and is never changed.
package struct Interface: ~Copyable {
  let name: UnsafeMutablePointer<CChar>
  let nameLength: Int
  let version: UInt32
  let count: UInt32
  /// The names are copies.
  let methods: UnsafeMutablePointer<MethodDescription>
  let next: InterfacePointer?

  deinit {
    for index in 0..<Int(count) {
      Memory.release(UnsafeMutableRawPointer(mutating: methods[index].name))
    }
    Memory.release(methods)
    Memory.release(name)
  }
}

package typealias InterfacePointer = UnsafeMutablePointer<Interface>

extension UnsafeMutablePointer where Pointee == Interface {
  /// What a caller would say of it.
  var description: InterfaceDescription {
    InterfaceDescription(
      name: pointee.name, version: pointee.version, count: pointee.count,
      methods: pointee.methods)
  }

  /// Whether name and version are the same.
  func isSame(as description: InterfaceDescription) -> Bool {
    guard let name = description.name,
      description.version == pointee.version
    else { return false }
    return areEqual(name, pointee.name, length: pointee.nameLength)
      && name[pointee.nameLength] == 0
  }

  /// Whether the methods are the same, too.
  fileprivate func hasMethods(of description: InterfaceDescription) -> Bool {
    guard let methods = description.methods,
      description.count == pointee.count
    else { return false }
    for index in 0..<Int(pointee.count) {
      let mine = pointee.methods[index]
      let theirs = methods[index]
      guard let name = mine.name, let other = theirs.name,
        mine.flags == theirs.flags,
        mine.defaultDisposition == theirs.defaultDisposition
      else { return false }
      let bytes = length(of: name, limit: TextLimit.label)
      guard areEqual(name, other, length: bytes + 1) else { return false }
    }
    return true
  }

  /// Copies a table of functions, after checking that every required one is
  /// there.
  func copyMethods(
    _ table: UnsafePointer<UnsafeRawPointer?>?, thread: ThreadPointer
  ) throws(Status) -> UnsafeMutablePointer<UnsafeRawPointer?> {
    guard let table else { throw thread.invalid("methods is NULL") }
    let count = Int(pointee.count)
    for index in 0..<count where table[index] == nil {
      let method = pointee.methods[index]
      guard method.flags & MethodDescription.required != 0 else { continue }
      let interfaceName = UnsafePointer(pointee.name)
      throw thread.invalid { text in
        text.append("required method \"")
        text.append(method.name)
        text.append("\" of interface \"")
        text.append(interfaceName)
        text.append("\" is missing")
      }
    }
    let copy = Memory.allocate(UnsafeRawPointer?.self, count: count)
    guard let copy else { throw .noMemory }
    copy.update(from: table, count: count)
    return copy
  }

  fileprivate static func make(
    _ description: InterfaceDescription, next: InterfacePointer?
  ) -> InterfacePointer? {
    guard let name = description.name, let methods = description.methods,
      let made = Memory.allocate(Interface.self)
    else { return nil }
    let nameLength = length(of: name, limit: TextLimit.label)
    let count = Int(description.count)
    let copies = Memory.allocate(MethodDescription.self, count: count)
    let nameCopy = Memory.copy(name, length: nameLength)
    guard let copies, let nameCopy else {
      Memory.release(copies)
      Memory.release(nameCopy)
      Memory.release(made)
      return nil
    }
    made.initialize(
      to: Interface(
        name: nameCopy, nameLength: nameLength, version: description.version,
        count: description.count, methods: copies, next: next))
    for index in 0..<count {
      let method = methods[index]
      guard let methodName = method.name,
        let copy = Memory.copy(
          methodName, length: length(of: methodName, limit: TextLimit.label))
      else {
        made.destroy()
        return nil
      }
      copies[index] = MethodDescription(
        name: copy, flags: method.flags,
        defaultDisposition: method.defaultDisposition)
    }
    return made
  }

  fileprivate func destroy() {
    deinitialize(count: 1)
    Memory.release(self)
  }
}

extension UnsafeMutablePointer where Pointee == RegistryRecord {
  /// Finds an interface by name and version, and adds it if it is new.
  func intern(
    _ description: InterfaceDescription, thread: ThreadPointer
  ) throws(Status) -> InterfacePointer {
    try thread.check(description)
    let found: (InterfacePointer?, Status) = pointee.lock.locked {
      var known = pointee.interfaces
      while let each = known {
        if each.isSame(as: description) {
          return each.hasMethods(of: description)
            ? (each, .ok) : (nil, .interface)
        }
        known = each.pointee.next
      }
      let made = InterfacePointer.make(description, next: pointee.interfaces)
      guard let made else { return (nil, .noMemory) }
      pointee.interfaces = made
      return (made, .ok)
    }
    if let interface = found.0 { return interface }
    guard found.1 == .interface else { throw found.1 }
    throw thread.toThrow(
      thread.fail(.interface) { text in
        text.append("interface \"")
        text.append(description.name)
        text.append("\" version ")
        text.append(description.version)
        text.append(" is known here with other methods")
      })
  }

  func freeInterfaces() {
    while let interface = pointee.interfaces {
      pointee.interfaces = interface.pointee.next
      interface.destroy()
    }
  }
}

extension UnsafeMutablePointer where Pointee == ThreadRecord {
  fileprivate func check(_ description: InterfaceDescription) throws(Status) {
    guard description.name != nil else {
      throw invalid("the interface's name is NULL")
    }
    try checkText(description.name, "interface name", limit: TextLimit.label)
    guard let methods = description.methods else {
      throw invalid("the interface's methods is NULL")
    }
    guard (1...InterfaceDescription.methodLimit).contains(description.count)
    else {
      throw invalid { text in
        text.append("the interface has ")
        text.append(description.count)
        text.append(" methods; it can have 1 to 256")
      }
    }
    let known = MethodDescription.required | MethodDescription.hasDefault
    for index in 0..<Int(description.count) {
      guard methods[index].name != nil else {
        throw invalid("a method's name is NULL")
      }
      try checkText(methods[index].name, "method name", limit: TextLimit.label)
      guard methods[index].flags & ~known == 0 else {
        throw invalid("a method's flags have unknown bits")
      }
    }
  }
}
