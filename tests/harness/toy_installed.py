"""A pytest plug-in that puts the toy paper in the place of the five before any claim is collected."""

import toy

toy.install()
