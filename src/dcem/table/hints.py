"""What the names of columns suggest: patterns, and nothing that decides.

Names are compared as `in_words` writes them. `candidates` and `propose` weigh what is found here
against what the values say.
"""

import re
from dataclasses import dataclass

import numpy as np

from dcem.table import values

LABEL = re.compile(
    r"(^|_)(y|y_obs|label|labels|outcome|target|class|response|event|result)(_|$)|result$"
    r"|(befund|ergebnis)(_|$)"
)
RESULT = re.compile(
    r"diagnos|positiv|(^|_)(found|hit|weapon|contraband|default(ed)?|fraud|bad|repaid|died|death"
    r"|sepsis|cancer|diabetes|disease|infect(ed|ion)|malignan\w*|recid\w*|relaps\w*|readmi\w*"
    r"|diagnose|nachweis|treffer|sichergestellt|ausfall|gefunden"
    r"|charge_?off|charged_off|loan_status|delinquen\w*|violation|diseased|ill|sick|truth)(_|$)"
)
TESTED = re.compile(
    r"(^|_)(tested|screened|searched|search|search_conducted|frisked|approved|accepted|granted"
    r"|funded|lent|measured|ordered|biopsied|biopsy|cultured|culture|labell?ed|examined|inspected"
    r"|audited|released|referred|imaged|scanned|swabbed|test_done|testing|test"
    r"|getestet|angefordert|untersucht|gemessen|durchsucht|durchgeführt|genehmigt)(_|$)"
)
GROUPS = {  # in this order
    "race or ethnicity": re.compile(r"(^|_)(race|races|ethni\w*|raceeth\w*|ridreth\d|hispanic)"),
    "sex or gender": re.compile(r"(^|_)(sex|gender|riagendr|geschlecht)(_|$)"),
    "insurance": re.compile(r"(^|_)(insur\w*|payer|payor|medicaid|versicherung\w*)"),
    "religion, origin or language": re.compile(
        r"(^|_)(religion|caste|nationality|citizen\w*|language|migrant|immigrant|indigenous"
        r"|herkunft\w*|nationalität|staatsangehörigkeit|sprache)"
    ),
    "disability": re.compile(r"(^|_)(disab\w+|behinderung)"),
    "age": re.compile(r"(^|_)(age(_?(group|band|cat\w*|bracket|class))?|alter(sgruppe)?)(_|$)"),
}
PERSON = re.compile(
    r"(^|_)(patient(en|in)?|person(en)?|subject|participant|member|client|customer|applicant|individual"
    r"|resident|defendant|driver|student|borrower|mrn|seqn|pat|pt|pid|nhs)(_|$)|^id$"
)
ROW = re.compile(r"(^|_)(id|nbr|no|nr|num|number|key|uuid|guid|mrn|seqn|pid|index|hadm|stay)(_|$)")
WEIGHT = re.compile(r"^(sample|survey|sampling|case)_?(weight|wt)s?$|^(p|s)?weights?_?(survey)$")
AFTER = re.compile(  # named like what happens when the result is known
    r"(^|_)(discharge\w*|entlass\w*|readmi\w*|disposition|follow_?up|outcome|arrest\w*|citation\w*|summons|died|death"
    r"|mortality|expired|deceased|sentence\w*|recover(y|ies)|collections?|payback|repaid\w*"
    r"|result|results|confirmed|final)(_|$)|result$"
)
PERHAPS_AFTER = re.compile(
    r"(^|_)(diag\w*|treat\w*|medication\w*|drug\w*|therap\w*|change\w*)(_|$)"
)
BAD = re.compile(
    r"^>|high|abnormal|elevated|positiv|reactive|detected|found|default|charged off|charge-off"
    r"|late|bad|dead|died|deceased|malignant|fail|yes|hit|recid|erhöht|auffällig|pathologisch"
)
GOOD = re.compile(r"^no|non-?reactive|not detected|^un|fully paid|current|good|benign|pass|alive")
MARKS = {"?", "??", "NA", "N/A", "NULL", "(null)", "#N/A", "<NA>", "nan", "NaN", "k.A.", "n.b."}


def in_words(name: str) -> str:
    """A name as lower-case words joined by underscores.

    >>> in_words("RiskScore"), in_words("risk-score"), in_words("Risk score?")
    ('risk_score', 'risk_score', 'risk_score')
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"[\W_]+", "_", apart).strip("_").casefold()


@dataclass(frozen=True)
class Seen:
    """A column, with its name in words."""

    name: str
    words: str
    text: values.Coded
    missing: float

    @property
    def known(self) -> np.ndarray:
        """Rows [n] that have a value."""
        return self.text.codes >= 0

    def is_yes_no(self) -> bool:
        """Whether its two values say yes and no."""
        return len(self.text.values) == 2 and values.yes_or_no(self.text.values) is not None

    def says_yes(self) -> np.ndarray:
        """Rows [n] of a yes-or-no column that say yes."""
        said = values.yes_or_no(self.text.values)
        assert said is not None
        return self.text.take(said == 1, False)

    def is_sensitive(self) -> bool:
        """Whether it is named like a group of people."""
        return any(pattern.search(self.words) for pattern in GROUPS.values())
