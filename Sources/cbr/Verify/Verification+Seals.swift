// SPDX-License-Identifier: Apache-2.0

import CallbackRegistry

/// The seals that blocks must have from one on, by the key of that one.
final class SealCheck {
  /// What a block has instead of the right seal.
  enum Fault { case none, different, tooFar }

  /// More keys than these are computed for no block.
  private static var farthest: Int64 { 1 << 30 }

  let first: Int64
  private(set) var sealed: Int64 = 0
  private let key: SealKey

  /// Nil without memory.
  init?(_ given: VerificationKey) {
    guard let key = SealKey() else { return nil }
    given.bytes.withUnsafeBytes { key.set(block: given.block, key: $0) }
    first = given.block
    self.key = key
  }

  /// Compares a block's seal; nil: it is right, or not yet to be there.
  func fault(
    of block: Int64, root: Digest, seal: Digest?, by hash: Hash
  ) -> Fault? {
    guard block >= key.block else { return nil }
    guard let seal else { return Fault.none }
    guard block - key.block <= Self.farthest else { return .tooFar }
    while key.block < block {
      guard key.ratchet(by: hash) else { return .different }
    }
    guard key.seal(of: root, by: hash) == seal else { return .different }
    sealed += 1
    return nil
  }
}

extension Verification {
  /// Looks at the seal of a block that has just begun.
  mutating func lookAtSeal(_ row: Row, of block: ChainedBlock) {
    let fault = seals?.fault(
      of: block.number, root: block.root, seal: row.digest(8), by: hash)
    switch fault {
    case nil: break
    case .some(.none): note("block ", block.number, " is not sealed")
    case .different: note("seal of block ", block.number, " differs")
    case .tooFar:
      note("block ", block.number, " is too far from that of the key")
    }
  }

  /// Looks whether the chain reaches the block that was sealed first.
  mutating func lookAtSealedEnd() {
    guard let first = seals?.first, (block?.number ?? 0) < first - 1 else {
      return
    }
    note("blocks before block ", first, " are missing")
  }
}
