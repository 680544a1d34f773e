// SPDX-License-Identifier: Apache-2.0

package import CCallbackRegistry

/// A cookie is the token's own bits: nothing that could dangle.
@c @implementation
package func cbr_cookie(_ token: cbr_token) -> UnsafeMutableRawPointer! {
  UnsafeMutableRawPointer(bitPattern: UInt(token))
}

@c @implementation
package func cbr_from_cookie(_ cookie: UnsafeRawPointer!) -> cbr_token {
  cbr_token(UInt(bitPattern: cookie))
}
