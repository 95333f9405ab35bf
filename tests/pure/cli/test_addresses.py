"""The address of a service, as people copy it: what is taken, and what is said about it."""

import pytest

from gateway.config import base_url, said_of_url
from tests.cases import each


@each(
    "told, taken, cut",
    [
        ("https://brew.example", "https://brew.example", ""),
        ("https://brew.example/", "https://brew.example", ""),
        (" https://brew.example ", "https://brew.example", ""),
        ("HTTPS://brew.example", "https://brew.example", ""),
        ("https://brew.example/v1", "https://brew.example", "/v1"),
        ("https://brew.example/v1/", "https://brew.example", "/v1"),
        ("https://brew.example/V1//", "https://brew.example", "/V1"),
        ("http://host:8090/v1", "http://host:8090", "/v1"),
        ("http://[::1]:8090/v1", "http://[::1]:8090", "/v1"),
        ("https://club.example/brewing/v1", "https://club.example/brewing", "/v1"),
        ("https://club.example/v10", "https://club.example/v10", ""),
    ],
)
def test_the_path_of_the_api_is_cut_off_and_said(told: str, taken: str, cut: str) -> None:
    assert base_url(told) == taken
    said = f"{cut} belongs to the API, not to the address of the service: {taken} is taken." if cut else None
    assert said_of_url(told, taken) == said


@pytest.mark.parametrize("told", ["brew.example", "host:8090", "ftp://host", "https://", "http://host:99999"])
def test_what_is_no_address_is_refused(told: str) -> None:
    with pytest.raises(ValueError, match="must look like https://host"):
        base_url(told)
