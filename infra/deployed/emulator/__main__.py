"""Runs ministack with corrections. cloud.py starts it with the Python that has ministack installed.

Each module corrects one part: `resources` what a stack makes, `calls` permissions and encryption, `codedeploy` how
aliases move to new versions. Importing a module applies its corrections.
"""

import calls
import codedeploy
import resources
from ministack import app

__all__ = ["calls", "codedeploy", "resources"]

app.main()
