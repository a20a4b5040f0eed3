"""Guards the value of the keyring during an import.

An import may change a resource to what the template says, and the template says that the keyring's value is generated.
Without its value, no webhook secret can be opened. So the value is marked before the import, and if another one is
current afterwards, the marked one becomes current again. A marked value is not removed by Secrets Manager.
"""

import json

from resources import Aws, Failed

MARK = "adopting"
CURRENT = "AWSCURRENT"


def mark(aws: Aws, secret: str) -> None:
    versions = stages(aws, secret)
    if MARK not in versions and CURRENT in versions:
        aws.secrets.update_secret_version_stage(
            SecretId=secret, VersionStage=MARK, MoveToVersionId=versions[CURRENT]
        )


def check(aws: Aws, secret: str) -> bool:
    """Makes the marked value current again, and removes the mark. Returns whether another value was current."""
    versions = stages(aws, secret)
    if MARK not in versions:
        return False
    marked, current = versions[MARK], versions[CURRENT]
    if marked != current:
        if not is_generated(aws, secret):
            raise Failed(
                f"{secret} got a new value meanwhile, as by `marketctl webhooks rotate-keyring`. It was left as it is. "
                f"The value before it is the version {marked}. Remove the mark: aws secretsmanager "
                f"update-secret-version-stage --secret-id {secret} --version-stage {MARK} "
                f"--remove-from-version-id {marked}"
            )
        aws.secrets.update_secret_version_stage(
            SecretId=secret, VersionStage=CURRENT, MoveToVersionId=marked, RemoveFromVersionId=current
        )
    aws.secrets.update_secret_version_stage(SecretId=secret, VersionStage=MARK, RemoveFromVersionId=marked)
    return marked != current


def is_generated(aws: Aws, secret: str) -> bool:
    """Returns whether the current value is one that CloudFormation makes."""
    value = aws.secrets.get_secret_value(SecretId=secret)["SecretString"]
    return list(json.loads(value)) == ["generated"]


def stages(aws: Aws, secret: str) -> dict[str, str]:
    """Returns the versions that have stages, by stage."""
    versions = aws.secrets.list_secret_version_ids(SecretId=secret, MaxResults=100)["Versions"]
    return {stage: version["VersionId"] for version in versions for stage in version.get("VersionStages", [])}
