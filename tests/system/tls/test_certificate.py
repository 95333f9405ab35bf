"""The certificate: what is read of it, what is refused, and what a reload changes."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.stats import Stats
from gateway.tls.certificate import DAY_S, PART, UNUSABLE, CertificateFiles, load
from tests.cases import each
from tests.clock import FakeClock
from tests.program.program import until
from tests.system.tls.conftest import Pair


def openssl(*words: object, feed: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *map(str, words)], input=feed, capture_output=True, check=True).stdout


def test_names_end_and_fingerprint_are_those_that_openssl_sees(pair: Pair) -> None:
    found = load(*pair.files)
    assert found.names[:2] == ("brew.example", "192.0.2.77")
    assert {"localhost", "127.0.0.1", "::1"} <= set(found.names)
    shown = openssl("x509", "-in", pair.certificate, "-noout", "-fingerprint", "-sha256").decode()
    assert shown.strip().endswith(f"={found.fingerprint}")
    [line] = openssl(
        "x509", "-in", pair.certificate, "-noout", "-enddate", "-dateopt", "iso_8601"
    ).splitlines()
    assert found.describe(0.0).startswith(
        f"certificate for brew.example, ends on {line.decode().partition('=')[2][:10]}, SHA-256 "
    )


def test_a_certificate_that_an_authority_has_signed(tmp_path: Path) -> None:
    root, root_key, request, key, signed, chain = (
        tmp_path / name for name in ("root", "root.key", "request", "key", "signed", "chain")
    )
    fresh = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(*fresh, "-x509", "-subj", "/CN=root", "-keyout", root_key, "-out", root)
    names = "subjectAltName=DNS:*.Brew.example,IP:fd00::1,email:a@brew.example"
    openssl(*fresh, "-subj", "/CN=x", "-addext", names, "-keyout", key, "-out", request)
    by = ("-CA", root, "-CAkey", root_key, "-CAcreateserial", "-copy_extensions", "copy", "-days", 9)
    openssl("x509", "-req", "-in", request, *by, "-out", signed)
    chain.write_bytes(signed.read_bytes() + root.read_bytes())
    for file in (signed, chain):
        assert load(file, key).names == ("*.brew.example", "fd00::1")


def locked(pair: Pair) -> bytes:
    return openssl("pkey", "-in", pair.key, "-aes128", "-passout", "pass:secret")


def for_clients(pair: Pair) -> bytes:
    """A certificate of the same key, that is not for servers."""
    words = ("req", "-x509", "-key", pair.key, "-subj", "/CN=x", "-addext", "extendedKeyUsage=clientAuth")
    return openssl(*words)


def with_half_an_address(pair: Pair) -> bytes:
    """A certificate for an IP address of three bytes."""
    words = ("req", "-x509", "-key", pair.key, "-subj", "/CN=x", "-addext", "extendedKeyUsage=serverAuth")
    return openssl(*words, "-addext", "subjectAltName=DER:30:05:87:03:01:02:03")


@each(
    "certificate, key, words",
    [
        (lambda a, b: None, lambda a, b: a.key.read_bytes(), "c.pem: there is no such file or directory"),
        (lambda a, b: a.certificate.read_bytes(), lambda a, b: None, "k.pem: there is no such file"),
        (lambda a, b: b"", lambda a, b: a.key.read_bytes(), "c.pem holds no certificate"),
        (
            lambda a, b: a.certificate.read_bytes()[:300],
            lambda a, b: a.key.read_bytes(),
            "only a part of one",
        ),
        (
            lambda a, b: a.certificate.read_bytes(),
            lambda a, b: a.key.read_bytes()[:120],
            "k.pem holds no key",
        ),
        (lambda a, b: a.certificate.read_bytes(), lambda a, b: b.key.read_bytes(), "does not belong to"),
        (lambda a, b: a.certificate.read_bytes(), lambda a, b: locked(a), "needs a password; take it off"),
        (lambda a, b: for_clients(a), lambda a, b: a.key.read_bytes(), "c.pem is not for a server"),
        (lambda a, b: with_half_an_address(a), lambda a, b: a.key.read_bytes(), "an address or an end that"),
    ],
)
def test_a_pair_that_cannot_be_used_names_its_fault(
    pair: Pair,
    other: Pair,
    tmp_path: Path,
    certificate: "object",
    key: "object",
    words: str,
) -> None:
    files = tmp_path / "c.pem", tmp_path / "k.pem"
    for path, make in zip(files, (certificate, key), strict=True):
        path.unlink(missing_ok=True)
        assert callable(make)
        content = make(pair, other)
        if content is not None:
            path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(*files)
    assert words in str(caught.value)


class Bench:
    """Files in use, and the state that the health page shows."""

    def __init__(self, folder: Path, pair: Pair) -> None:
        self.paths = folder / "c.pem", folder / "k.pem"
        self.stats = Stats()
        self.clock = FakeClock(pair.content.ends_at - 100 * DAY_S)
        self.put(pair.certificate.read_bytes(), pair.key.read_bytes())
        self.files = CertificateFiles(*self.paths, self.stats, self.clock)

    def put(self, certificate: bytes, key: bytes) -> None:
        for path, content in zip(self.paths, (certificate, key), strict=True):
            path.write_bytes(content)

    @property
    def state(self) -> tuple[str, bool]:
        return self.stats.parts[PART], PART not in self.stats.in_trouble


async def test_a_reload_takes_a_whole_pair_and_leaves_the_old_one_otherwise(
    tmp_path: Path, pair: Pair, other: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path, pair)
    first = bench.files.context()
    halves = [
        (other.certificate.read_bytes()[:200], other.key.read_bytes()),
        (other.certificate.read_bytes(), pair.key.read_bytes()),
        (b"", b""),
    ]
    for number, half in enumerate(halves, 1):
        bench.put(*half)
        await bench.files.reload()
        assert bench.files.context() is first
        words, well = bench.state
        assert (words.startswith(UNUSABLE), pair.content.fingerprint[:23] in words, well) == (
            True,
            True,
            False,
        )
        assert len(caplog.records) == number
    bench.put(other.certificate.read_bytes(), other.key.read_bytes())
    await bench.files.reload()
    assert bench.files.current.fingerprint == other.content.fingerprint
    assert bench.state[1]
    assert other.content.fingerprint[:23] in bench.state[0]


async def test_a_certificate_that_has_ended_is_no_replacement_but_serves_from_the_start(
    tmp_path: Path, pair: Pair, other: Pair
) -> None:
    bench = Bench(tmp_path, pair)
    first = bench.files.context()
    bench.clock.advance(101 * DAY_S)
    bench.put(other.certificate.read_bytes(), other.key.read_bytes())
    await bench.files.reload()
    assert bench.files.context() is first
    assert "is out of date" in bench.state[0]
    # At the start a wrong clock or a late renewal must not keep the plain listeners from taking readings.
    late = CertificateFiles(*bench.paths, bench.stats, bench.clock)
    assert late.current.fingerprint == other.content.fingerprint
    assert not bench.state[1]


async def test_a_request_is_followed_by_one_reload(tmp_path: Path, pair: Pair, other: Pair) -> None:
    bench = Bench(tmp_path, pair)
    running = asyncio.create_task(bench.files.run())
    bench.put(other.certificate.read_bytes(), other.key.read_bytes())
    bench.files.request_reload()
    bench.files.request_reload()
    await until(lambda: bench.files.current.fingerprint == other.content.fingerprint)
    running.cancel()
