"""What every command that asks the admin API begins with: the server it is about, and whoever signs in there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.options import output_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.cli.client import ApiClient

api_url_option = click.option(
    "-u",
    "--api-url",
    metavar="URL",
    help="The admin API.  [default: MATOOLKIT_API_URL, else the configuration, else http://127.0.0.1:8080]",
)


def asks(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that asks the admin API and shows something."""
    return api_url_option(output_option(command))


def api_client(api_url: str | None) -> ApiClient:
    """The server that is meant, asked as whoever is signed in."""
    import os

    from matoolkit.cli.client import ApiClient
    from matoolkit.cli.configuration import home, read_configuration
    from matoolkit.cli.database import data_folder
    from matoolkit.cli.sign_in import chosen
    from matoolkit.clock import SystemClock

    configuration = read_configuration(api_url, os.environ)
    sign_in = chosen(configuration, data_folder(), home(), SystemClock())
    return ApiClient(configuration.api_url, sign_in.token, advice=sign_in.advice)
