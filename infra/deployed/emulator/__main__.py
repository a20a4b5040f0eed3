"""Runs ministack with corrections. cloud.py starts it with the Python that has ministack installed.

Each module corrects one part: `resources` what a stack makes, `calls` permissions and encryption, `owners` whose a
resource is, `codedeploy` how aliases move to new versions. Importing a module applies its corrections.
"""

import calls
import codedeploy
import owners
import resources
from ministack import app

__all__ = ["calls", "codedeploy", "owners", "resources"]

app.main()
