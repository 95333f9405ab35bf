"""`python -m tests.pure.documents --write` renews the made parts of the documents."""

import sys

from tests.pure.documents.generated import write

if sys.argv[1:] != ["--write"]:
    sys.exit("usage: python -m tests.pure.documents --write")
for page in write():
    print(page.name)
