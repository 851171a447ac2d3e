"""``ringleader serve``: the console."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ringleader.cli.options import Json, ModelFolder
from ringleader.cli.stopping import on_closed_pipe
from ringleader.cli.terminal import VERBOSITY, note, warn
from ringleader.errors import ModelFileError, SettingsError
from ringleader.runtime.stores import local_path
from ringleader.wording import harmless

INSTALL = "the console needs FastAPI and uvicorn; install them with: pip install 'ringleader[console]'"


def command(
    model: ModelFolder,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 uses any free one.")
    ] = 8765,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the link, without opening a browser.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Open the console on a model: a queue, account pages, groups, decisions, and a model that learns from each.

    It listens only on this machine. The printed link opens one session; stop with Ctrl-C.

    Example: ringleader serve model
    """
    if local_path(model) is None:
        raise SettingsError(f"the console needs a model on this machine: copy {model} to a folder here, and serve that")
    try:
        from ringleader.console.server import Running, is_loopback, serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "ringleader":
            raise
        raise SettingsError(INSTALL) from error
    from ringleader.snapshot.folder import is_model

    if not is_loopback(host):
        warn(
            f"warning: on {host} everyone who reaches this machine reaches the console, and what they send is not "
            "encrypted: whoever listens on the way can take the session and decide in your name. Put it behind a "
            "tunnel (ssh -L) or a proxy with TLS, or listen on 127.0.0.1"
        )

    def ready(running: Running) -> None:
        address = running.address
        if as_json:
            print(json.dumps(address._asdict()), flush=True)
            return
        link = f"{address.url}/?token={address.token}"
        if VERBOSITY.quiet:
            print(link, flush=True)
        else:
            print(f"the console of {harmless(model, 400)} is open at\n\n    {link}\n", flush=True)
            note("the link works once; stop the console with Ctrl-C")
        if not no_browser:
            import threading
            import webbrowser

            threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()  # some browsers stay in front

    if not is_model(model):
        raise ModelFileError(f"there is no model in {model}; name the folder that fit wrote")
    # Of other commands a pipe that is closed is the end. Here it is a browser that went on to another page.
    on_closed_pipe(ends=False)
    note(f"opening {model}", quiet=as_json)
    serve(model, host, port, ready, warn)
