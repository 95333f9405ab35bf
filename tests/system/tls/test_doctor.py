"""`doctor` on certificates and public addresses: red, yellow, green, and a remedy."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway import interfaces
from gateway.doctor.certificate import pair as check
from gateway.doctor.finding import Context, Finding
from gateway.doctor.ports import addresses
from gateway.interfaces import OwnAddress
from gateway.settings import Settings
from gateway.tls.certificate import DAY_S
from tests.cases import each
from tests.clock import FakeClock
from tests.system.tls.conftest import Pair
from tests.system.tls.test_certificate import openssl


async def nothing() -> dict[str, str]:
    raise TimeoutError


def context(folder: Path, days_left: float, pair: Pair | None, **more: Any) -> Context:
    clock = FakeClock(0.0 if pair is None else pair.content.ends_at - days_left * DAY_S)
    files: dict[str, Any] = {} if pair is None else {"tls_cert": pair.certificate, "tls_key": pair.key}
    settings = Settings(**{"data_dir": folder, **files, **more})
    return Context(settings, None, clock, nothing)


@each(
    "days_left, level, words",
    [
        (100.5, "ok", "certificate for brew.example, ends on "),
        (22.5, "ok", "ends on "),
        (21.5, "warning", ", in 21 days"),
        (0.5, "warning", ", in 0 days"),
        (-0.5, "problem", "clients refuse it"),
    ],
)
async def test_the_end_of_a_certificate(
    tmp_path: Path, pair: Pair, days_left: float, level: str, words: str
) -> None:
    [finding] = await check(context(tmp_path, days_left, pair))
    assert (finding.level, words in finding.text, bool(finding.remedy)) == (level, True, level != "ok")


async def test_files_that_are_no_pair(tmp_path: Path, pair: Pair, other: Pair) -> None:
    mixed = Pair(pair.certificate, other.key, pair.content)
    [finding] = await check(context(tmp_path, 100, mixed))
    assert (finding.level, "does not belong to" in finding.text) == ("problem", True)
    [finding] = await check(context(tmp_path, 100, None))
    assert finding == Finding("", "ok", "none is configured: HTTPS and MQTT over TLS are off")


async def test_a_certificate_without_a_name(tmp_path: Path, pair: Pair) -> None:
    bare = tmp_path / "c.pem"
    words = ("req", "-x509", "-key", pair.key, "-subj", "/CN=x", "-days", "900", "-out", bare)
    await asyncio.to_thread(openssl, *words)
    [finding] = await check(context(tmp_path, 100, Pair(bare, pair.key, pair.content)))
    assert (finding.level, "certificate for no name" in finding.text) == ("warning", True)


async def test_a_key_that_others_can_read(tmp_path: Path, pair: Pair) -> None:
    key = tmp_path / "k.pem"
    key.write_bytes(pair.key.read_bytes())
    key.chmod(0o644)
    _, finding = await check(context(tmp_path, 100, Pair(pair.certificate, key, pair.content)))
    assert (finding.level, finding.remedy) == ("warning", f"chmod o= {key}")


async def test_a_public_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = [OwnAddress("eth0", "192.168.1.20"), OwnAddress("eth0", "2a00:1450::1")]
    monkeypatch.setattr(interfaces, "own_addresses", lambda: own)
    [finding] = await addresses(context(tmp_path, 0, None))
    assert (finding.level, "2a00:1450::1" in finding.text) == ("warning", True)
    [finding] = await addresses(context(tmp_path, 0, None, host="192.168.1.20"))
    assert finding.level == "ok"
    [finding] = await addresses(context(tmp_path, 0, None, host="192.168.1.20", mqtt_host=["%eth0"]))
    assert finding.level == "warning"
