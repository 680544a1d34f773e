// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
//
// A package of its own, as a program that uses the library would be.

import PackageDescription

let library = Target.Dependency.product(
  name: "CallbackRegistryShared", package: "CallbackRegistry")

let package = Package(
  name: "Examples",
  products: [
    .library(
      name: "HalvePlugin", type: .dynamic, targets: ["HalvePlugin"])
  ],
  dependencies: [.package(name: "CallbackRegistry", path: "../..")],
  targets: [
    .executableTarget(name: "Downloader", dependencies: [library]),
    .executableTarget(name: "FileWatcher", dependencies: [library]),
    .executableTarget(name: "PluginHost", dependencies: [library]),
    .target(name: "HalvePlugin", dependencies: [library]),
  ],
  swiftLanguageModes: [.v6]
)
