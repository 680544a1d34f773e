// SPDX-License-Identifier: Apache-2.0

/// A kind of file system, by the number that statfs(2) has for it.
struct FileSystem {
  enum Kind { case local, network, unknown, memory }

  let name: String
  let kind: Kind

  static let known: [UInt32: FileSystem] = [
    0xEF53: FileSystem(name: "ext4", kind: .local),
    0x5846_5342: FileSystem(name: "xfs", kind: .local),
    0x9123_683E: FileSystem(name: "btrfs", kind: .local),
    0x2FC1_2FC1: FileSystem(name: "zfs", kind: .local),
    0xF2F5_2010: FileSystem(name: "f2fs", kind: .local),
    0xCA45_1A4E: FileSystem(name: "bcachefs", kind: .local),
    0x5265_4973: FileSystem(name: "reiserfs", kind: .local),
    0x3153_464A: FileSystem(name: "jfs", kind: .local),
    0x794C_7630: FileSystem(name: "overlay", kind: .local),
    0x4D44: FileSystem(name: "vfat", kind: .local),
    0x2011_BAB0: FileSystem(name: "exfat", kind: .local),
    0x7366_746E: FileSystem(name: "ntfs3", kind: .local),
    0x0102_1994: FileSystem(name: "tmpfs", kind: .memory),
    0x8584_58F6: FileSystem(name: "ramfs", kind: .memory),
    0x6573_5546: FileSystem(name: "fuse", kind: .unknown),
    0x0102_1997: FileSystem(name: "9p", kind: .unknown),
    0x786F_4256: FileSystem(name: "vboxsf", kind: .unknown),
    0xBACB_ACBC: FileSystem(name: "vmhgfs", kind: .unknown),
    0x6969: FileSystem(name: "nfs", kind: .network),
    0x517B: FileSystem(name: "smb", kind: .network),
    0xFE53_4D42: FileSystem(name: "smb2", kind: .network),
    0xFF53_4D42: FileSystem(name: "cifs", kind: .network),
    0x564C: FileSystem(name: "ncp", kind: .network),
    0x7375_7245: FileSystem(name: "coda", kind: .network),
    0x5346_414F: FileSystem(name: "afs", kind: .network),
    0x6B41_4653: FileSystem(name: "afs", kind: .network),
    0x00C3_6400: FileSystem(name: "ceph", kind: .network),
    0x0BD0_0BD0: FileSystem(name: "lustre", kind: .network),
    0x0116_1970: FileSystem(name: "gfs2", kind: .network),
    0x7461_636F: FileSystem(name: "ocfs2", kind: .network),
    0x1983_0326: FileSystem(name: "beegfs", kind: .network),
    0x4750_4653: FileSystem(name: "gpfs", kind: .network),
  ]
}
