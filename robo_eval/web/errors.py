"""What a site refuses, each with its HTTP status."""

from __future__ import annotations

from robo_eval.core.errors import InputError


class LoggedOutError(InputError):
    """Nobody is logged in, or the session is over."""

    http_status = 401


class LoginError(InputError):
    """Name and password do not open an account, or not now."""

    http_status = 401


class BusyError(InputError):
    """So many passwords are being looked at that this one is not."""

    http_status = 429


class ForbiddenError(InputError):
    """The account's roles do not include this; nothing was changed."""

    http_status = 403


class NotFoundError(InputError):
    """There is no such page or thing."""

    http_status = 404


class FormError(InputError):
    """A form is none, or not one that a page of this session showed."""

    http_status = 400
