"""`matoolkit completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import os
from pathlib import PurePath

import click

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_MATOOLKIT_COMPLETE"
_INSTALLED_BY = {
    "bash": "matoolkit completion bash > ~/.local/share/bash-completion/completions/matoolkit",
    "zsh": "matoolkit completion zsh > ~/.zfunc/_matoolkit   # with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc",
    "fish": "matoolkit completion fish > ~/.config/fish/completions/matoolkit.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
@click.option("--how", is_flag=True, help="Say how to install it, instead.")
def completion(shell: str | None, *, how: bool) -> None:
    """Print what makes a shell complete commands and options.

    SHELL is the one in use unless it is named. To try it: `source <(matoolkit completion bash)`.
    """
    from click.shell_completion import get_completion_class

    from matoolkit.cli.main import main

    shell = shell or PurePath(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell) if shell in _SHELLS else None
    if kind is None:
        raise click.UsageError(f"name the shell: {', '.join(_SHELLS)}")
    if how:
        click.echo(f"{_INSTALLED_BY[shell]}\nThen begin a new shell.")
        return
    maker = kind(main, {}, "matoolkit", _VARIABLE)
    # Not `source`, which runs bash to ask for its version and complains on standard error.
    click.echo(maker.source_template % maker.source_vars())
