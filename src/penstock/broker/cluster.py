"""The image of the cluster that this broker answers from, replaced as a whole at each change."""

from penstock.metadata.image import ClusterImage


class Cluster:
    """Holds the current image. Belongs to the event loop."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
