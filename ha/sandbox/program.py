"""What to run: a Java class with its properties and arguments."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Program:
    """One call of Java.

    Attributes:
        main: the class.
        arguments: what its ``main`` is given.
        properties: Java system properties.
    """

    main: str
    arguments: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
