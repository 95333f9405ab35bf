"""Print the copyright file of the Debian package, made from what each bundled library says about itself.

Usage: copyright.py DIRECTORY, which holds the libraries as pip has installed them, and the program.
"""

import re
import sys
import textwrap
from importlib.metadata import Distribution, distributions
from pathlib import Path

FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
APACHE = "Apache License\nVersion 2.0\nThis is in /usr/share/common-licenses/Apache-2.0 on Debian."
WHERE = "usr/lib/hydrometer-gateway"
NOTICE = re.compile(r"(?im)^\W*(copyright\b(?! notice| holder| owner| license| law).*\d{4}.*)$")
TEXT = re.compile(r"(?i)^(licen[cs]e|copying|notice|authors)", re.ASCII)


def licence_files(part: Distribution) -> list[Path]:
    """Return the files of licences that lie beside the metadata of a library."""
    beside = [Path(str(file.locate())) for file in part.files or () if ".dist-info" in file.parts[0]]
    return sorted(path for path in beside if TEXT.match(path.name) or "licenses" in path.parts)


def text_of(path: Path) -> str:
    """Return the text of a licence, or where Debian keeps it."""
    text = path.read_text("utf-8", errors="replace")
    start, end = text.find("Apache License"), text.find("END OF TERMS AND CONDITIONS")
    if -1 < start < end:
        owner = [line for line in text[end:].splitlines() if NOTICE.match(line)]
        return "\n".join([text[:start].rstrip(), APACHE, *owner]).strip()
    return text


def licence_name(part: Distribution) -> str:
    """Return the short name of the licence, as one word that the copyright format allows."""
    said = part.metadata.get("License-Expression") or part.metadata.get("License") or ""
    if not said or "\n" in said:
        kinds = [each for each in part.metadata.get_all("Classifier") or [] if each.startswith("License ::")]
        said = kinds[0].split(" :: ")[-1] if kinds else "other"
    return re.sub(r"[^\w.+-]+", "-", said.strip()).strip("-")


def field(name: str, lines: list[str]) -> str:
    """Return a field with a line of its own for each line; an empty line is a dot."""
    return f"{name}:\n" + "\n".join(f" {line}" if line.strip() else " ." for line in lines)


def paragraph(part: Distribution) -> str:
    """Return the paragraph of one library."""
    texts = [text_of(path) for path in licence_files(part)]
    if not texts:
        raise SystemExit(f"{part.name} {part.version} has no text of its licence: name its place here")
    tops = {file.parts[0] for file in part.files or ()} - {"..", "bin", "share"}
    notices = [found.strip() for text in texts for found in NOTICE.findall(text)]
    authors = part.metadata.get("Author") or part.metadata.get("Author-email") or f"authors of {part.name}"
    lines = [f"{part.name} {part.version}", *(f"{WHERE}/{top}*" for top in sorted(tops))]
    text = "\n\n".join(text.expandtabs().strip() for text in texts)
    wrapped = [line for each in text.splitlines() for line in textwrap.wrap(each, 200) or [""]]
    return "\n".join(
        [
            field("Files", lines[1:]),
            f"Comment: {lines[0]}",
            field("Copyright", list(dict.fromkeys(notices)) or [str(authors)]),
            f"License: {licence_name(part)}",
            *(f" {line}" if line.strip() else " ." for line in wrapped),
        ]
    )


def main(directory: str) -> None:
    """Print one paragraph for the program, and one for each library."""
    parts = sorted(distributions(path=[directory]), key=lambda part: part.name.lower())
    [ours] = [part for part in parts if part.name == "hydrometer-gateway"]
    head = f"Format: {FORMAT}\nUpstream-Name: hydrometer-gateway"
    whole = paragraph(ours)
    whole = "Files:\n *\n" + whole[whole.index("Comment:") :]
    print("\n\n".join([head, whole, *(paragraph(part) for part in parts if part is not ours)]))


if __name__ == "__main__":
    main(sys.argv[1])
