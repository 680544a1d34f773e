// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry
import CallbackRegistry

@c @implementation
package func cbr_thunk_create(
  _ registry: cbr_registry, _ token: cbr_token,
  _ signature: UnsafePointer<cbr_signature>!,
  _ out: UnsafeMutablePointer<cbr_thunk>!
) -> cbr_status {
  guard let out else { return refuse("out is NULL") }
  out.pointee = Handle.none
  guard let signature else { return refuse("signature is NULL") }
  guard StructureSize.isKnown(signature) else {
    return refuse("signature->size is not one that this library knows")
  }
  let given = signature.pointee
  guard given.reserved == 0 else { return refuse("reserved is not 0") }
  let what = SignatureRequest(
    result: TypeDescription(given.result),
    arguments: UnsafeRawPointer(given.arguments), count: given.count,
    context: given.context, otherwise: given.otherwise, label: given.label,
    typeTag: given.type_tag, line: given.line, file: given.file)
  return Thunks.create(in: registry, token: token, what, out: out).inC
}

@c @implementation
package func cbr_thunk_function(_ thunk: cbr_thunk) -> cbr_function! {
  unsafeBitCast(Thunks.function(thunk), to: cbr_function?.self)
}

@c @implementation
package func cbr_current_context() -> UnsafeMutableRawPointer! {
  ThunkCalls.currentContext()
}

extension TypeDescription {
  fileprivate init(_ type: cbr_type) {
    self.init(
      kind: type.kind, count: type.count,
      fields: UnsafeRawPointer(type.fields))
  }
}
