"""``python -m planezip.cli``."""

import sys

from planezip.cli import main

sys.exit(main())
