// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
//
// A package that depends on this one as any other would: what it says of that
// is what Getting Started says. Tests/Build/test_package.py builds and runs it.

import PackageDescription

let package = Package(
  name: "SamplePackage",
  dependencies: [
    .package(name: "CallbackRegistry", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "Sample",
      dependencies: [
        .product(name: "CallbackRegistry", package: "CallbackRegistry")
      ],
      swiftSettings: [.treatAllWarnings(as: .error)])
  ],
  swiftLanguageModes: [.v6]
)
