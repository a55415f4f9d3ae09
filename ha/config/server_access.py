"""Access to the servers of a process, as its settings say."""

from ha.config.settings import Settings
from ha.listening.access import Access
from ha.listening.tls import ServerTls
from ha.listening.tokens import Role, Tokens


def access_of(settings: Settings) -> Access:
    """Return the access that the settings describe. InvalidSettings: a file cannot be read."""
    http = settings.http
    files = {
        Role.READ: ("http_read_tokens", http.http_read_tokens),
        Role.OPERATE: ("http_operate_tokens", http.http_operate_tokens),
    }
    return Access(
        http.hosts,
        http.networks,
        ServerTls(http.http_certificate, http.http_key, http.http_client_ca) if http.http_certificate else None,
        Tokens({role: file for role, file in files.items() if file[1]}),
        http.savepoint_roots,
    )
