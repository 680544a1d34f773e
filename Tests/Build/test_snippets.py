#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the Swift that the documentation shows, and runs what is whole.

The Swift blocks of an article are one program, from the first to the last. Its
blocks of language `text` are, together, what the program prints, where … stands
for anything; a block `sh` is a command to be run behind it. Its blocks of C are
the C module `Legacy`, with the header in a comment `<!-- h ... -->`. A comment
`<!-- swift ... -->` belongs to the program, but is not shown. Blocks of language
`manifest` are in the manifest of Tests/SamplePackage.

The blocks in the documentation comments of the module are compiled, each
comment's for itself, with what snippets/Prelude.swift declares, and behind the
lines of the file in snippets that is named as the source is. There … is any value,
or nothing, and what is declared need not be used.

All this becomes a package in build/snippets, which is built where the module has
been built already.
"""

import itertools
import pathlib
import re
import subprocess
import tempfile
import unittest

import counting
import dependents

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "Sources/CallbackRegistry/CallbackRegistry.docc"
SOURCES = ROOT / "Sources/CallbackRegistry/Swift"
PRELUDES = ROOT / "Tests/Build/snippets"
MANIFEST = ROOT / "Tests/SamplePackage/Package.swift"
PACKAGE = ROOT / "build/snippets"
ARTICLES = sorted(CATALOGUE.glob("*.md"))

DECLARATION = re.compile(
    r"(?:@\w+ |final )*(?:class|struct|enum|protocol|actor|extension) ")

BLOCK = re.compile(
    r"^```(\w+)\n(.*?)^```$|^<!-- (\w+)\n(.*?)^-->$", re.M | re.S)


def blocks(article):
    """Returns each block as (language, line, text)."""
    text = article.read_text()
    return [
        (match[1] or match[3], text.count("\n", 0, match.start()) + 2,
         match[2] or match[4])
        for match in BLOCK.finditer(text)]


def of(article, *languages):
    return [text for language, _, text in blocks(article)
            if language in languages]


def located(path, line, text):
    """Returns the code, which the compiler takes for lines of that file."""
    return (f'#sourceLocation(file: "{path}", line: {line})\n{text}'
            "#sourceLocation()\n")


def program(article):
    return "".join(located(article, line, text)
                   for language, line, text in blocks(article)
                   if language == "swift")


def comments(source):
    """Returns the documentation comments of a file as (line, lines)."""
    found, first = [], None
    lines = source.read_text().splitlines()
    for number, line in enumerate([*lines, ""]):
        is_comment = line.strip().startswith("///")
        if is_comment and first is None:
            first = number
        if not is_comment and first is not None:
            found.append((first + 1, [
                re.sub(r"^\s*/// ?", "", each)
                for each in lines[first:number]]))
            first = None
    return found


def examples(lines):
    """Returns the lines of a comment that are code; the others are empty.

    Code is fenced, or begins four spaces to the right behind an empty line. What
    is fenced as another language's is none."""
    code, fence, indented = [], None, False
    former = ""
    for line in lines:
        if line.startswith("```"):
            fence, kept = None if fence else line, ""
        elif fence:
            kept = line if fence in ("```", "```swift") else ""
        else:
            indented = line.startswith("    ") and (
                indented or not former.strip()) or (
                indented and not line.strip())
            kept = line[4:] if indented else ""
        code.append(re.sub(r"(= |-> \w+ in )…", r"\1missing()", kept)
                    .replace("…", ""))
        former = line
    return code


def split(code):
    """Returns the declarations of types and extensions, which stand at the left
    edge and are moved out of the function, and the rest. Lines keep their
    numbers."""
    outside, inside = [], []
    is_outside = False
    for line in code:
        if DECLARATION.match(line):
            is_outside = True
        outside.append(line if is_outside else "")
        inside.append("" if is_outside else line)
        if line.startswith("}") or line.endswith("{}"):
            is_outside = False
    # Each example may have a type of that name.
    outside = [re.sub(r"^((?:@\w+ )*)(?!extension\b)", r"\1private ", line)
               if DECLARATION.match(line) else line for line in outside]
    return "\n".join(outside) + "\n", "\n".join(inside) + "\n"


def using(text):
    """Returns what uses all that a text declares."""
    return "".join(f"_ = {name}\n" for name in re.findall(
        r"^(?:let|var) (\w+)", text, re.M))


def of_comment(source, line, lines):
    """Returns the file for a comment, or None if there is no code in it."""
    code = examples(lines)
    if not any(code):
        return None
    outside, inside = split(code)
    own = PRELUDES / source.name
    prelude = own.read_text() if own.exists() else ""
    imports = "".join(
        f"{each}\n" for each in re.findall(r"^import .*", prelude, re.M))
    prelude = re.sub(r"^import .*", "", prelude, flags=re.M)
    name = re.sub(r"\W", "_", source.stem)
    return (
        f"import CallbackRegistry\nimport Prelude\n{imports}"
        f"{located(source, line, outside)}"
        f"func snippet_{name}_{line}() async throws {{\n"
        f"{prelude}"
        f"do {{\n{located(source, line, inside)}{using(inside)}}}\n"
        f"{using(prelude)}}}\n")


def of_comments():
    """Returns a Swift file for each comment with code, by name."""
    files = {f"{source.stem}-{line}.swift": of_comment(source, line, lines)
             for source in sorted(SOURCES.rglob("*.swift"))
             for line, lines in comments(source)}
    return {name: text for name, text in files.items() if text}


def package():
    """Returns the files of the package, by path."""
    legacy = '"Legacy", .product(name: "CCallbackRegistry", package: "root")'
    module = '.product(name: "CallbackRegistry", package: "root")'
    strict = ".treatAllWarnings(as: .error)"
    prelude = PRELUDES / "Prelude.swift"
    files = {"Sources/Prelude/Prelude.swift": prelude.read_text()}
    for name, text in of_comments().items():
        files[f"Sources/Comments/{name}"] = text
    targets = [f'.target(name: "Prelude", dependencies: [{module}])',
               f'.target(name: "Comments", dependencies: ["Prelude", {module}], '
               f'swiftSettings: [{strict}])']
    for article in ARTICLES:
        name = article.stem
        needs = module
        if code := of(article, "c"):
            files["Sources/Legacy/include/Legacy.h"] = "\n".join(
                of(article, "h"))
            files["Sources/Legacy/Legacy.c"] = "\n".join(code)
            needs += ", " + legacy
            targets.append(
                '.target(name: "Legacy", dependencies: '
                '[.product(name: "CCallbackRegistry", package: "root")], '
                'cSettings: [.treatAllWarnings(as: .error)])')
        if code := program(article):
            files[f"Sources/{name}Article/main.swift"] = code
            targets.append(
                f'.executableTarget(name: "{name}Article", dependencies: '
                f'[{needs}], swiftSettings: [{strict}])')
    files["Package.swift"] = (
        "// swift-tools-version: 6.3\nimport PackageDescription\n"
        'let package = Package(name: "Snippets", dependencies: '
        '[.package(name: "root", path: "../..")], targets: [\n'
        + ",\n".join(targets) + "\n], swiftLanguageModes: [.v6])\n")
    return files


def write(files):
    """Writes what has changed, and removes what is no longer there."""
    for path in PACKAGE.rglob("*"):
        if path.is_file() and str(path.relative_to(PACKAGE)) not in files:
            path.unlink()
    for name, text in files.items():
        path = PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def as_said(said, printed):
    """Returns the lines that were printed, as the article has those of them
    that match."""
    return [
        line if re.fullmatch(re.escape(line).replace("…", ".*"), other)
        else other
        for line, other in itertools.zip_longest(
            said, printed, fillvalue="")][:len(printed)]


class Snippets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        write(package())
        status, said = dependents.build(PACKAGE)
        if status != 0:
            raise AssertionError(said)

    def test_examples_in_comments_are_found(self):
        """They have been compiled, if there are any."""
        self.assertGreater(len(of_comments()), 4)

    def test_articles_print_what_they_say(self):
        for article in ARTICLES:
            with self.subTest(article.stem), \
                    tempfile.TemporaryDirectory() as folder:
                command = "\n".join(
                    [f"{dependents.BUILT}/{article.stem}Article", *of(article, "sh")])
                ran = subprocess.run(
                    ["bash", "-euc", command], cwd=folder, text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    timeout=60)
                self.assertEqual(ran.returncode, 0, ran.stdout)
                said = "".join(of(article, "text")).splitlines()
                printed = ran.stdout.splitlines()
                self.assertEqual(said, as_said(said, printed))

    def test_manifest_is_the_sample_packages(self):
        shown = [text.strip() for article in ARTICLES
                 for text in of(article, "manifest")]
        self.assertGreater(len(shown), 1)
        for text in shown:
            self.assertIn(text, MANIFEST.read_text())


if __name__ == "__main__":
    counting.run()
