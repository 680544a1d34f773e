// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let hooks: [SwiftSetting] = [
  .define("CBR_TEST_HOOKS", .when(traits: ["TestHooks"]))
]

// The Makefile compiles the same targets as Embedded Swift for the C library,
// by command-line options: a setting here, even under a trait, would make
// SwiftPM link the ordinary products without the Swift runtime's start-up code
// and search path.
let package = Package(
  name: "CallbackRegistry",
  products: [
    .library(name: "CallbackRegistry", targets: ["CallbackRegistry"]),
    // One library for a process of several parts, as a host and its plug-ins
    // are: all must have the same one. It has the C functions, too.
    .library(
      name: "CallbackRegistryShared", type: .dynamic,
      targets: ["CallbackRegistry", "CInterop"]),
    // The C API of the same engine, for C in Swift packages.
    .library(
      name: "CCallbackRegistry", targets: ["CCallbackRegistry", "CInterop"]),
    .executable(name: "cbr", targets: ["cbr"]),
  ],
  traits: [
    .trait(
      name: "TestHooks",
      description: "Compiles the points at which tests step in.")
  ],
  targets: [
    .target(
      name: "CPlatform",
      cSettings: [.define("CBR_TEST_HOOKS", .when(traits: ["TestHooks"]))],
      linkerSettings: [.linkedLibrary("ffi")]),
    .systemLibrary(
      name: "CSQLite", pkgConfig: "sqlite3",
      providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CLinux"),
    .target(
      name: "CallbackRegistry", dependencies: ["CPlatform", "CSQLite"],
      swiftSettings: hooks),
    .target(
      name: "CCallbackRegistry", path: "include", publicHeadersPath: "."),
    .target(
      name: "CInterop",
      dependencies: ["CallbackRegistry", "CCallbackRegistry", "CPlatform"],
      swiftSettings: hooks),
    .executableTarget(
      name: "cbr",
      dependencies: ["CallbackRegistry", "CLinux", "CPlatform", "CSQLite"]),
    .executableTarget(
      name: "Quickstart", dependencies: ["CallbackRegistry"],
      path: "Examples/Quickstart"),
    .target(
      name: "CInterchange", dependencies: ["CCallbackRegistry"],
      path: "Tests/CInterchange"),
    .testTarget(
      name: "CallbackRegistryTests",
      dependencies: [
        "CallbackRegistry", "CInterop", "CCallbackRegistry", "CInterchange",
        "CPlatform", "CSQLite",
      ],
      swiftSettings: hooks),
  ],
  swiftLanguageModes: [.v6]
)
