"""Every test runs with shapes and types checked at each call."""

import os

from jaxtyping import install_import_hook

if not os.environ.get("HEEDFUL_NO_TYPE_HOOK"):
    install_import_hook("heedful", "beartype.beartype")
