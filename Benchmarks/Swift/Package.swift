// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
//
// What Swift programs get: the module, optimized and called across packages.
// It is an archive, which run.sh links with harness.c.

import PackageDescription

let package = Package(
  name: "SwiftCalls",
  products: [
    .library(name: "SwiftCalls", type: .static, targets: ["SwiftCalls"])
  ],
  dependencies: [
    .package(name: "CallbackRegistry", path: "../..")
  ],
  targets: [
    .target(
      name: "SwiftCalls",
      dependencies: [
        .product(name: "CallbackRegistry", package: "CallbackRegistry")
      ],
      swiftSettings: [.treatAllWarnings(as: .error)])
  ],
  swiftLanguageModes: [.v6]
)
