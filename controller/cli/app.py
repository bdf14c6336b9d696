"""The ``tidegate`` command: the composition root, the only place that knows every part.

Each topic has a module of its own; ``main`` turns every failure that a user can cause into one clear line and exit
code 2. Parts are imported when their command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import os
import sys

import typer
from typer.exceptions import TyperException

from controller.cli import bench, decide, demo, forecast, learning, policy, shares, simulate, store
from controller.core.errors import InputError

app = typer.Typer(
    name="tidegate",
    help=(
        "Gives every team on a GPU cluster its GPUs before the team has to wait for them.\n\n"
        "Start with [bold]tidegate demo[/bold]: the whole product on a bundled trace."
    ),
    epilog="Exit codes: 0 fine, 1 failed, 2 bad input (one line a problem), 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

demo.register(app)
simulate.register(app)
decide.register(app)
bench.register(app)
shares.register(app)
app.add_typer(policy.app, name="policy")
app.add_typer(forecast.app, name="forecast")
app.add_typer(learning.app, name="learning")
app.add_typer(store.app, name="store")


@app.command()
def version() -> None:
    """Print the version.

    Example: tidegate version
    """
    from importlib.metadata import version as installed

    typer.echo(installed("tidegate"))


def _usage(error: TyperException) -> str:
    """What is wrong with the words of a call, in one line; empty where there were none and the help was printed."""
    message = str(getattr(error, "format_message", lambda: error)())
    context = getattr(error, "ctx", None)
    return f"{message} (see {context.command_path} --help)" if message and context else message


def main() -> None:
    """Run the command line; never show a traceback unless ``TIDEGATE_DEBUG=1`` asks for it."""
    try:
        code = app(prog_name="tidegate", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except InputError as error:
        for line in error.lines():
            typer.echo(line, err=True)
        sys.exit(2)
    except TyperException as error:
        if said := _usage(error):
            typer.echo(said, err=True)
        sys.exit(2)
    except typer.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is left to say, and Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:  # the process boundary: a fault of ours still ends in one line
        if os.environ.get("TIDEGATE_DEBUG"):
            raise
        typer.echo(
            f"tidegate: internal error: {type(error).__name__}: {error}\n"
            "This is a fault in tidegate. TIDEGATE_DEBUG=1 shows where; please report it with that output.",
            err=True,
        )
        sys.exit(1)
