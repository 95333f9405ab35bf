"""`tls self-signed`: the pair, its names, and what is never overwritten."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.tls import self_signed
from gateway.tls.certificate import load
from tests.cases import each
from tests.program.program import answer, command, refusal


async def test_the_pair_is_whole_and_what_is_printed_can_be_pasted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    finished = await answer(
        data, "tls self-signed --name Brew.example --name 192.0.2.77 --name fd00::1 --days 30"
    )
    certificate, key = data / "tls.crt", data / "tls.key"
    assert [oct(path.stat().st_mode & 0o777) for path in (data, certificate, key)] == [
        "0o700",
        "0o644",
        "0o600",
    ]
    made = load(certificate, key)
    assert {"brew.example", "192.0.2.77", "fd00::1", "localhost", "127.0.0.1"} <= set(made.names)
    names, fingerprint, options = finished.lines
    assert names == f"For {', '.join(made.names)}"
    assert fingerprint == f"SHA-256 {made.fingerprint}"
    assert options == f"Start the gateway with: --tls-cert {certificate} --tls-key {key}"
    assert sorted(path.name for path in data.iterdir()) == ["tls.crt", "tls.key"]


async def test_a_key_is_replaced_by_force_alone(tmp_path: Path) -> None:
    await answer(tmp_path, "tls self-signed --out", str(tmp_path / "pair"))
    key = (tmp_path / "pair" / "tls.key").read_bytes()
    words = await refusal(tmp_path, "tls self-signed --out", str(tmp_path / "pair"))
    assert words.endswith("tls.key is there already; --force replaces it")
    assert (tmp_path / "pair" / "tls.key").read_bytes() == key
    await answer(tmp_path, "tls self-signed --force --out", str(tmp_path / "pair"))
    assert (tmp_path / "pair" / "tls.key").read_bytes() != key


@each("name", ["a,IP:1.2.3.4", "a b", "-a", "a..b", "x" * 64, "a\nb", "", "*.example", "a/CN=b"])
async def test_names_that_are_none_never_reach_openssl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(self_signed, "_run", lambda *_: pytest.fail("openssl was called"))
    finished = await command(tmp_path, ("tls", "self-signed", f"--name={name}"))
    assert finished.status == 1
    assert f"{name!r} is neither a host name nor an address" in finished.err


async def test_without_openssl_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = await refusal(tmp_path / "data", "tls self-signed")
    assert words == "there is no `openssl` program: `sudo apt install openssl`, or bring a certificate"
    assert not (tmp_path / "data").exists()


def test_clients_that_verify_take_it(tmp_path: Path) -> None:
    made = self_signed.make(tmp_path, ["brew.example"], 825)
    client = ssl.create_default_context(cafile=tmp_path / "tls.crt")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(to_client, to_server, server_hostname="brew.example")
    ours = made.context.wrap_bio(to_server, to_client, server_side=True)
    for side in (theirs, ours, theirs):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert theirs.version() == "TLSv1.3"
