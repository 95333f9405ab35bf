"""Two pairs of certificate and key, made once for all tests of a worker."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.tls.certificate import Certificate
from gateway.tls.self_signed import CERTIFICATE_NAME, KEY_NAME, make


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path
    content: Certificate

    @property
    def files(self) -> tuple[Path, Path]:
        return self.certificate, self.key


def made_in(folder: Path, *names: str) -> Pair:
    content = make(folder, names, days=825)
    return Pair(folder / CERTIFICATE_NAME, folder / KEY_NAME, content)


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return made_in(tmp_path_factory.mktemp("pair"), "brew.example", "192.0.2.77")


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return made_in(tmp_path_factory.mktemp("other"), "other.example")
