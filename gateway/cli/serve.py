"""`serve`: run the gateway."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from gateway.cli.options import Config, DataDir, MqttTopics, set_up_logging
from gateway.config import HTTP_PORT, MQTT_PORT, TCP_PORT, Settings, explain
from gateway.errors import ConfigError


def serve(
    data_dir: DataDir,
    config: Config = None,
    host: Annotated[
        str,
        typer.Option(envvar="GATEWAY_HOST", help="Address to listen on.", show_default="all interfaces"),
    ] = "",
    port: Annotated[
        int, typer.Option(envvar="GATEWAY_PORT", help="HTTP port; 0 takes a free one.")
    ] = HTTP_PORT,
    mqtt_port: Annotated[
        int,
        typer.Option(
            envvar="GATEWAY_MQTT_PORT", help="Port of the embedded MQTT broker; 0 takes a free one."
        ),
    ] = MQTT_PORT,
    mqtt_url: Annotated[
        str | None,
        typer.Option(
            envvar="GATEWAY_MQTT_URL",
            help="Use this broker instead of the embedded one: mqtt://user:password@host:port.",
        ),
    ] = None,
    mqtt_topic: MqttTopics = None,
    no_mqtt: Annotated[bool, typer.Option("--no-mqtt", envvar="GATEWAY_NO_MQTT", help="No MQTT.")] = False,
    tcp_port: Annotated[
        int,
        typer.Option(
            envvar="GATEWAY_TCP_PORT", help="Port for the iSpindel's service TCP; 0 takes a free one."
        ),
    ] = TCP_PORT,
    no_tcp: Annotated[bool, typer.Option("--no-tcp", envvar="GATEWAY_NO_TCP", help="No TCP.")] = False,
    also_listen: Annotated[
        list[int] | None,
        typer.Option(
            envvar="GATEWAY_ALSO_LISTEN",
            help="A further HTTP port, for devices alone whose firmware fixes it, such as 5000 (iSpindel, "
            "CraftBeerPi) or 80 (TiltBridge 1.0); several may be given.",
            show_default=False,
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(
            envvar="GATEWAY_CORS_ORIGIN",
            help="Let web pages of this origin use the API, such as https://brew.lan; several may be given.",
            show_default=False,
        ),
    ] = None,
    upstream_url: Annotated[
        str | None,
        typer.Option(
            envvar="GATEWAY_UPSTREAM_URL",
            help="Brewing Data Service to forward to: https://host, without /v1.",
        ),
    ] = None,
    upstream_key_file: Annotated[
        Path | None,
        typer.Option(envvar="GATEWAY_UPSTREAM_KEY_FILE", help="File that holds the API key for it."),
    ] = None,
    forward_readings: Annotated[
        int, typer.Option(envvar="GATEWAY_FORWARD_READINGS", help="Forward when so many readings wait,")
    ] = 500,
    forward_seconds: Annotated[
        float, typer.Option(envvar="GATEWAY_FORWARD_SECONDS", help="or when the oldest has waited so long.")
    ] = 60.0,
    mirror_from: Annotated[
        str | None,
        typer.Option(
            envvar="GATEWAY_MIRROR_FROM",
            help="Brewing Data Service to copy, again and again: https://host, without /v1.",
        ),
    ] = None,
    mirror_key_file: Annotated[
        Path | None,
        typer.Option(
            envvar="GATEWAY_MIRROR_KEY_FILE",
            help="File that holds the API key for it. [default: the upstream's, where it is the same]",
            show_default=False,
        ),
    ] = None,
    mirror_hours: Annotated[
        float, typer.Option(envvar="GATEWAY_MIRROR_HOURS", help="Hours from one copying to the next.")
    ] = 24.0,
    mirror_photos: Annotated[
        bool, typer.Option("--mirror-photos", envvar="GATEWAY_MIRROR_PHOTOS", help="Copy photos, too.")
    ] = False,
    quota: Annotated[
        str | None,
        typer.Option(
            envvar="GATEWAY_QUOTA",
            help="What the data may take on the disk, such as 2GiB; beyond it no reading is taken. "
            "[default: 4GiB, at most half of the disk]",
            show_default=False,
        ),
    ] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(
            envvar="GATEWAY_KEEP_DAYS",
            help="Delete readings of brew sessions that ended so many days ago, once they are forwarded. "
            "[default: keep everything]",
            show_default=False,
        ),
    ] = None,
    nightly_backup: Annotated[
        Path | None,
        typer.Option(
            envvar="GATEWAY_NIGHTLY_BACKUP",
            help="Directory, best on another disk, for a backup every night at three; it must be there.",
        ),
    ] = None,
    nightly_keep: Annotated[
        int, typer.Option(envvar="GATEWAY_NIGHTLY_KEEP", help="How many of those are kept.")
    ] = 7,
    log_level: Annotated[
        str, typer.Option(envvar="GATEWAY_LOG_LEVEL", help="debug, info, warning or error.")
    ] = "info",
) -> None:
    """Run the gateway: listen on HTTP, MQTT and TCP, store, forward, serve the API.

    Works without any option. Stops cleanly on SIGTERM and Ctrl-C.

    Example: hydrometer-gateway serve --upstream-url https://brew.example --upstream-key-file key.txt
    """
    try:
        settings = Settings(
            data_dir=data_dir,
            host=host,
            port=port,
            mqtt_port=mqtt_port,
            mqtt_url=mqtt_url,
            mqtt_topic=mqtt_topic or [],
            no_mqtt=no_mqtt,
            tcp_port=tcp_port,
            no_tcp=no_tcp,
            also_listen=also_listen or [],
            cors_origin=cors_origin or [],
            upstream_url=upstream_url,
            upstream_key_file=upstream_key_file,
            forward_readings=forward_readings,
            forward_seconds=forward_seconds,
            mirror_from=mirror_from,
            mirror_key_file=mirror_key_file,
            mirror_hours=mirror_hours,
            mirror_photos=mirror_photos,
            quota=quota,
            keep_days=keep_days,
            nightly_backup=nightly_backup,
            nightly_keep=nightly_keep,
            log_level=log_level,
        )
    except ValidationError as error:
        raise ConfigError(explain(error)) from error
    set_up_logging(settings.log_level)
    from gateway import app  # not at the top: every other command would pay for the listeners

    app.serve(settings, lambda line: typer.echo(line))
