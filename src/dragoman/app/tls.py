"""TLS as a node speaks it: its certificate, and whose certificates its callers may show."""

from __future__ import annotations

import ssl

from .config import ConfigError, TlsConfig

__all__ = ["tls_of"]


def tls_of(config: TlsConfig) -> ssl.SSLContext | None:
    """The context, or None if the node speaks plainly."""
    if not config.cert:
        if config.key or config.client_ca:
            raise ConfigError("tls.cert: it is not set, and tls.key or tls.client_ca is")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(config.cert, config.key or None)
        if config.client_ca:
            context.load_verify_locations(config.client_ca)
            # Who shows none may still show something else at the door.
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as wrong:
        raise ConfigError(f"tls: {config.cert}: {wrong}") from None
    return context
