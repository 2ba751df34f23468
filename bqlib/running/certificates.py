"""TLS between the workers, the scheduler and the client of a run's own cluster."""

import os
import shutil

from distributed import Security


def certified(folder):
    """TLS with the certificate and key in files of a folder."""
    files = {"ca_file": folder / "ca.pem"}
    for role in ("client", "scheduler", "worker"):
        files |= {f"{role}_key": folder / "key.pem", f"{role}_cert": folder / "cert.pem"}
    return Security(
        require_encryption=True, **{f"tls_{name}": str(path) for name, path in files.items()}
    )


def write_certificates(folder):
    """New ones, in a new folder that nobody else may read."""
    made = Security.temporary()
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(mode=0o700, parents=True)
    for name, text in {
        "ca.pem": made.tls_ca_file,
        "key.pem": made.tls_worker_key,
        "cert.pem": made.tls_worker_cert,
    }.items():
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
