"""Vendor token families: a table of prefixes and shapes; a row is tried only where its prefix stands.

`_ROWS`: class, prefixes (lower case, searched without regard to case), pattern matched at the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traces.redact.marker import Span

_ROWS: tuple[tuple[str, str, str], ...] = (
    # clouds
    ("aws_key_id", "akia asia abia acca", r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("aws_bedrock", "absk", r"ABSK[A-Za-z0-9+/]{80,200}={0,2}"),
    ("aws_mws", "amzn.mws.", r"amzn\.mws\.[0-9a-f]{8}-[0-9a-f-]{27}"),
    ("google", "aiza", r"AIza[\w-]{35}"),
    ("google", "gocspx-", r"GOCSPX-[\w-]{24,64}"),
    ("google", "ya29.", r"ya29\.[\w.-]{30,2000}"),
    ("google", "1//0", r"1//0[\w-]{40,200}"),
    ("firebase", ":apa91b", r":APA91b[\w-]{100,200}"),
    ("alibaba", "ltai", r"LTAI[A-Za-z0-9]{12,30}(?![A-Za-z0-9])"),
    ("tencent", "akid", r"AKID[A-Za-z0-9]{28,36}(?![A-Za-z0-9])"),
    ("yandex", "aqvn", r"AQVN[\w-]{35,38}"),
    ("yandex", "y0_", r"y0_[\w-]{50,70}"),
    ("baidu", "bce-v3/", r"bce-v3/ALTAK-[\w-]{15,40}/[0-9a-f]{40}"),
    ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    ("heroku", "hrku-", r"HRKU-[\w-]{32,70}"),
    ("flyio", "fm1_ fm2_ fo1_", r"f[mo]\d_[\w+/=,-]{40,2000}"),
    ("cloudflare", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    ("cloudflare", "cfut_ cfat_ cfk_", r"cf(?:ut|at|k)_[\w-]{40,80}"),
    ("netlify", "nfp_ nfc_ nfo_", r"nf[pco]_[A-Za-z0-9]{36,}"),
    (
        "vercel",
        "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_",
        r"(?:vc[piark]|vercel_blob_rw)_[A-Za-z0-9_]{24,80}",
    ),
    ("render", "rnd_", r"rnd_[A-Za-z0-9]{28,40}"),
    ("supabase", "sbp_", r"sbp_(?:oauth_|v0_)?[a-f0-9]{40}"),
    ("supabase", "sb_secret_", r"sb_secret_[\w-]{20,80}"),
    ("planetscale", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{32,64}"),
    ("neon", "napi_", r"napi_[a-z0-9]{60,70}"),
    ("databricks", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    ("openshift", "sha256~", r"sha256~[\w-]{43}"),
    ("rancher", "token-", r"token-[a-z0-9]{5}:[a-z0-9]{54}"),
    ("tailscale", "tskey-", r"tskey-[a-z]{2,12}-[\w-]{16,80}"),
    ("ovh", "ovh_", r"ovh_[A-Za-z0-9]{30,64}"),
    # code and packages
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,251}"),
    ("github", "ghs_", r"ghs_\d+_eyJ[\w.-]{40,2000}"),
    ("github", "github_pat_", r"github_pat_\w{40,255}"),
    (
        "gitlab",
        "glpat- glrt- gldt- glptt- gloas- glcbt- glft- glagent- glsoat- glimt- glffct- glwt-",
        r"gl[a-z]{2,6}-[\w.-]{20,300}",
    ),
    ("gitlab", "gr1348941", r"GR1348941[\w-]{20,40}"),
    ("bitbucket", "atbb", r"ATBB[A-Za-z0-9]{32}"),
    ("atlassian", "atatt3 atctt3", r"AT[AC]TT3[\w=-]{60,300}"),
    ("npm", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi", "pypi-age", r"pypi-AgE[\w-]{40,1000}"),
    ("rubygems", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    ("crates", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("nuget", "oy2", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    ("clojars", "clojars_", r"CLOJARS_[a-z0-9]{60}"),
    ("packagist", "packagist_", r"packagist_[a-z]{2,4}_[a-f0-9]{64,80}"),
    ("docker", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[\w-]{24,64}"),
    ("artifactory", "akcp", r"AKCp[A-Za-z0-9]{60,80}"),
    ("artifactory", "cmvmdgtuo", r"cmVmdGtuO[A-Za-z0-9]{50,60}"),
    ("circleci", "ccipat_ ccipra_", r"CCIP(?:AT|RA)_[\w-]{20,100}"),
    ("buildkite", "bkua_ bkaa_ bkat_", r"bk(?:ua|aa|at)_[a-z0-9]{32,64}"),
    ("sonarqube", "squ_ sqp_ sqa_", r"sq[upa]_[a-f0-9]{40}"),
    ("sourcegraph", "sgp_", r"sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}"),
    ("postman", "pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("prefect", "pnu_", r"pnu_[A-Za-z0-9]{36}"),
    ("pulumi", "pul-", r"pul-[a-f0-9]{40}"),
    ("terraform", ".atlasv1.", r"\.atlasv1\.[\w=-]{60,70}"),
    (
        "doppler",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        r"dp\.[a-z]{2,5}\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}",
    ),
    ("vault", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{20,300}"),
    ("onepassword", "ops_eyj", r"ops_eyJ[\w-]{100,2000}={0,3}"),
    (
        "onepassword",
        "a3-",
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    ("infisical", "st.", r"st\.[a-f0-9-]{20,40}\.[a-f0-9]{32}\.[a-f0-9]{32}"),
    # chat and mail
    (
        "slack",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xoxe.xox",
        r"xox[a-z](?:\.xox[bp])?-[\w%-]{10,400}",
    ),
    ("slack", "xapp- xwfp-", r"x(?:app|wfp)-\d?-?[\w-]{20,300}"),
    (
        "webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,200}",
    ),
    (
        "webhook",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/\d{5,25}/[\w-]{40,100}",
    ),
    ("webhook", ".webhook.office.com/", r"\.webhook\.office\.com/webhookb2/[\w@/-]{60,300}"),
    ("webhook", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/\d+/\w{5,20}"),
    (
        "webhook",
        "open.feishu.cn/open-apis/bot/ oapi.dingtalk.com/robot/send qyapi.weixin.qq.com/cgi-bin/webhook",
        r"(?:open\.feishu\.cn/open-apis/bot/v2/hook/|oapi\.dingtalk\.com/robot/send\?access_token=|"
        r"qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=)[\w-]{20,80}",
    ),
    ("sendgrid", "sg.", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    ("mailgun", "key-", r"key-[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("brevo", "xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("resend", "re_", r"re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,30}"),
    (
        "twilio",
        "sk0 sk1 sk2 sk3 sk4 sk5 sk6 sk7 sk8 sk9 ska skb skc skd ske skf",
        r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
    ),
    ("telegram", ":aa", r":AA[\w-]{32,34}(?![\w-])"),
    ("intercom", "dg9r", r"dG9r[A-Za-z0-9+/_-]{50,60}={0,2}"),
    # payment and shops
    (
        "stripe",
        "sk_live_ rk_live_ sk_test_ rk_test_ sk_prod_ rk_prod_",
        r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,250}",
    ),
    ("webhook_secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,80}"),
    ("square", "sq0atp- sq0csp- sq0idp-", r"sq0[a-z]{3}-[\w-]{22,60}"),
    ("square", "eaaa", r"EAAA[\w+=-]{56,60}(?![\w-])"),
    ("facebook", "eaa", r"EAA[A-Za-z0-9]{80,300}"),
    (
        "braintree",
        "access_token$",
        r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}",
    ),
    (
        "plaid",
        "access-production- access-sandbox- access-development-",
        r"access-(?:production|sandbox|development)-[0-9a-f-]{36}",
    ),
    ("razorpay", "rzp_live_ rzp_test_", r"rzp_(?:live|test)_[A-Za-z0-9]{14,24}"),
    ("flutterwave", "flwseck", r"FLWSECK(?:_TEST)?-[\w-]{12,60}"),
    ("shopify", "shpat_ shpca_ shppa_ shpss_", r"shp[a-z]{2}_[a-fA-F0-9]{32}"),
    ("easypost", "ezak eztk", r"EZ[AT]K[A-Za-z0-9]{50,60}"),
    ("shippo", "shippo_live_ shippo_test_", r"shippo_(?:live|test)_[a-f0-9]{40}"),
    ("lob", "live_ test_", r"(?:live|test)_[a-zA-Z0-9]{30,60}(?![A-Za-z0-9_])"),
    ("etsy", "cnf_", r"cnf_[A-Za-z0-9]{30,60}"),
    # models
    ("llm_key", "sk-", r"sk-[\w-]{20,400}"),
    ("llm_key", "gsk_", r"gsk_[A-Za-z0-9]{40,80}"),
    ("llm_key", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z]{30,40}"),
    ("llm_key", "xai-", r"xai-[A-Za-z0-9]{60,120}"),
    ("llm_key", "nvapi-", r"nvapi-[\w-]{60,80}"),
    ("llm_key", "pplx-", r"pplx-[A-Za-z0-9]{40,64}"),
    ("llm_key", "r8_", r"r8_[A-Za-z0-9]{37}"),
    ("llm_key", "tvly-", r"tvly-[\w-]{24,64}"),
    ("llm_key", "csk-", r"csk-[a-z0-9]{40,60}"),
    ("llm_key", "fw_", r"fw_[A-Za-z0-9]{20,40}(?![A-Za-z0-9_])"),
    ("llm_key", "tgp_v1_", r"tgp_v1_[\w-]{30,60}"),
    ("llm_key", "pcsk_", r"pcsk_[A-Za-z0-9_]{40,90}"),
    ("llm_key", "jina_", r"jina_[A-Za-z0-9_-]{40,80}"),
    ("llm_key", "e2b_", r"e2b_[a-f0-9]{40}"),
    ("llm_key", "fc-", r"fc-[a-f0-9]{32}"),
    ("llm_key", "sk_", r"sk_[a-f0-9]{48}(?![A-Za-z0-9])"),
    ("llm_key", "pa-", r"pa-[\w-]{40,60}(?![\w-])"),
    ("langsmith", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("langsmith", "ls__", r"ls__[0-9a-f]{32}"),
    ("wandb", "wandb_v1_", r"wandb_v1_[\w-]{40,120}"),
    # work tools
    ("linear", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,80}"),
    ("notion", "ntn_", r"ntn_[A-Za-z0-9]{40,60}"),
    ("notion", "secret_", r"secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])"),
    ("figma", "figd_ figo_ figoh_", r"fig(?:d|o|oh)_[\w-]{36,80}"),
    ("airtable", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("hubspot", "pat-na1- pat-eu1-", r"pat-[a-z]{2}\d-[0-9a-f-]{36}"),
    ("typeform", "tfp_", r"tfp_[\w.=-]{44,70}"),
    ("contentful", "cfpat-", r"CFPAT-[\w-]{43}"),
    ("dropbox", "sl.", r"sl\.(?:u\.)?[\w-]{100,2000}"),
    ("mapbox", "sk.eyj", r"sk\.eyJ[\w-]{40,200}\.[\w-]{20,60}"),
    ("readme", "rdme_", r"rdme_[a-z0-9]{60,80}"),
    ("duffel", "duffel_live_ duffel_test_", r"duffel_(?:live|test)_[\w=-]{43}"),
    ("adafruit", "aio_", r"aio_[A-Za-z0-9]{28}"),
    (
        "launchdarkly",
        "sdk- mob- api-",
        r"(?:sdk|mob|api)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    # watching
    ("newrelic", "nrak- nrjs- nrii- nrra-", r"NR(?:AK|JS|II|RA)-[A-Za-z0-9_-]{19,42}"),
    ("grafana", "glsa_ glc_", r"gl(?:sa|c)_[\w=+/-]{32,400}"),
    ("sentry", "sntrys_ sntryu_", r"sntry[su]_[\w+/=]{40,500}"),
    ("dynatrace", "dt0c01. dt0s", r"dt0[cs]\d{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    ("honeycomb", "hcaik_ hcbik_ hcxik_", r"hc[a-z]ik_[a-z0-9]{58}"),
    # keys and identities
    ("jwt", "eyj", r"eyJ[\w-]{8,4000}\.eyJ[\w-]{8,16000}(?:\.[\w-]{4,8000})?"),
    ("jwt", "eyj", r"eyJ[\w-]{8,4000}\.[\w-]{0,2000}\.[\w-]{8,200}\.[\w-]{8,16000}\.[\w-]{8,200}"),
    ("age", "age-secret-key-1", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    ("nostr", "nsec1", r"nsec1[a-z0-9]{58}"),
    ("wallet", "xprv yprv zprv", r"[xyz]prv[A-HJ-NP-Za-km-z1-9]{100,112}"),
    ("meraki", "eaaaa", r"EAAAA[\w-]{40,80}"),
    # password hashes: good for trying passwords against
    ("password_hash", "$2a$ $2b$ $2y$ $2x$", r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{50,60}"),
    (
        "password_hash",
        "$argon2",
        r"\$argon2(?:id|i|d)\$(?:v=\d+\$)?[mtp=,\d]{5,40}\$[A-Za-z0-9+/=]{8,90}\$[A-Za-z0-9+/=]{16,180}",
    ),
    (
        "password_hash",
        "$1$ $5$ $6$ $7$ $y$ $gy$ $apr1$ $md5 $sha1$ $p$ $h$ $nt$ $s$",
        r"\$(?:1|5|6|7|y|gy|apr1|md5|sha1|S|P|H|NT)\$(?:rounds=\d+\$|j[\w./]{1,8}\$)?[\w./$=]{16,200}",
    ),
    ("password_hash", "$p$ $h$", r"\$[PH]\$[./A-Za-z0-9]{31}"),
    ("password_hash", "$krb5", r"\$krb5(?:tgs|asrep|pa)\$[^\s'\"]{20,8000}"),
    (
        "password_hash",
        "$pbkdf2 $scrypt $bcrypt-sha256$",
        r"\$(?:pbkdf2|scrypt|bcrypt-sha256)[\w-]*\$[\w=,$./+]{20,300}",
    ),
    (
        "password_hash",
        "pbkdf2_sha pbkdf2:sha scrypt: argon2$argon2 bcrypt_sha256$ bcrypt$$2",
        r"(?:pbkdf2_sha\d+\$\d+\$[^\s$'\"]{1,64}\$[A-Za-z0-9+/=]{20,100}|pbkdf2:sha\d+(?::\d+)?\$[^\s$'\"]{1,64}\$[a-f0-9]{32,128}|"
        r"scrypt:\d+:\d+:\d+\$[^\s$'\"]{1,64}\$[a-f0-9]{64,128}|argon2\$argon2\w{1,2}\$[\w=,$+/]{30,300}|"
        r"bcrypt(?:_sha256)?\$\$2[aby]\$\d\d\$[./A-Za-z0-9]{53})",
    ),
    (
        "password_hash",
        "sha1$ sha256$ sha512$ md5$",
        r"(?:sha1|sha256|sha512|md5)\$[\w./+]{1,64}\$[a-f0-9]{32,128}(?![a-f0-9])",
    ),
    (
        "password_hash",
        "{ssha {sha {smd5} {crypt} {pbkdf2 {bcrypt} {argon2} {noop} {md5}",
        r"\{(?:S?SHA(?:\d{3})?|S?MD5|CRYPT|PBKDF2[\w-]*|bcrypt|argon2|noop)\}[\w$./+={}-]{6,300}(?<![{}])",
    ),
    (
        "password_hash",
        "scram-sha-",
        r"SCRAM-SHA-(?:1|256|512)\$\d+:[A-Za-z0-9+/=]{8,64}\$[A-Za-z0-9+/=]{20,100}:[A-Za-z0-9+/=]{20,100}",
    ),
    ("password_hash", ":aad3b435b51404ee", r":aad3b435b51404eeaad3b435b51404ee:[a-f0-9]{32}"),
    ("password_hash", "*", r"\*[0-9A-F]{40}(?![0-9A-Za-z])"),
    ("password_hash", "md5", r"md5[a-f0-9]{32}(?![0-9A-Za-z])"),
)
# Any vendor that names its tokens in the usual way: prefix, kind of token, random part.
_GENERIC_WORDS = "live prod test secret sk pat key token api priv private access auth svc"
_GENERIC = re.compile(
    r"[A-Za-z][A-Za-z0-9]{1,11}(?:[_-][a-z0-9]{1,8})?[_-](?:live|prod|test|secret|sk|pat|key|token|api|priv|private|access|auth|svc)"
    r"[_-](?=[A-Za-z0-9_-]{0,60}\d)[A-Za-z0-9_-]{20,200}"
)
_HEX_PART = re.compile(r"[0-9a-f-]+")


class Family:
    """One row of the table, compiled."""

    __slots__ = ("_is_telling", "label", "pattern", "prefixes")

    def __init__(self, label: str, prefixes: str, pattern: str) -> None:
        self.label = label
        self.prefixes = tuple(prefixes.split())
        self.pattern = re.compile(pattern)
        self._is_telling = all(
            len(prefix) >= 6 or (len(prefix) >= 4 and prefix[-1] in "-_")
            for prefix in self.prefixes
        )

    def match(self, text: str, start: int) -> Span | None:
        """Return the token that begins at `start`, if it is one."""
        if not starts_word(text, start, self.prefixes[0]):
            return None
        found = self.pattern.match(text, start)
        if found is None:
            return None
        end = found.end()
        while text[end - 1] in ".-" and end - start > 8:
            end -= 1
        token = text[start:end]
        if _is_sample(token) or not self._is_random(token):
            return None
        if self.label in _WIDENED:
            start = _WIDENED[self.label](text, start)
        return Span(start, end, self.label)

    def _is_random(self, token: str) -> bool:
        # No word is this long: letters alone will do.
        if self.label == "github" or (self.label == "llm_key" and _LONG_PART.search(token)):
            return True
        if self.label == "llm_key" and token.startswith(("sk-", "pa-")):
            return sum(c.isdigit() for c in token) >= 2 and not re.fullmatch(
                r"(?:[a-z]+\d?-)+[a-z]*\d?", token
            )
        if self.label in ("lob", "shopify", "crates", "nuget", "facebook", "render"):
            return sum(c.isdigit() for c in token) >= 3
        if self.label == "telegram":
            return True
        if self.label in ("llm_key", "password_hash", "webhook") or any(c.isdigit() for c in token):
            return True
        # One of thirty random tokens has no digit. Behind a prefix that nothing else begins with, one long part will do.
        return self._is_telling and _UNBROKEN.search(token, 5) is not None


_UNBROKEN = re.compile(r"[A-Za-z]{16}")
_LONG_PART = re.compile(r"[A-Za-z0-9]{32}")
_MASK = re.compile(r"[xX]{8}|0{10}|\*{4}")


def _is_sample(token: str) -> bool:
    return "EXAMPLE" in token or _MASK.search(token) is not None or len(set(token[6:])) < 4


# A few tokens begin before the part that tells them apart.
def _with_digits_before(text: str, start: int) -> int:
    first = start
    while first > 0 and text[first - 1].isdigit() and start - first < 12:
        first -= 1
    return first


def _with_word_before(text: str, start: int) -> int:
    first = start
    while (
        first > 0 and (text[first - 1].isalnum() or text[first - 1] in "_-") and start - first < 120
    ):
        first -= 1
    return first


def _with_url_before(text: str, start: int) -> int:
    return start - 8 if text.startswith("https://", max(0, start - 8)) else start


_WIDENED = {
    "telegram": _with_digits_before,
    "terraform": _with_word_before,
    "firebase": _with_word_before,
    "webhook": _with_url_before,
}
_INSIDE_WORD = (":", ".", "{", "$", "*")


def starts_word(text: str, start: int, prefix: str = "") -> bool:
    """Say whether `start` is not in the middle of a word (escapes before it do not count)."""
    if start == 0 or prefix.startswith(_INSIDE_WORD):
        return True
    before = text[start - 1]
    if not (before.isalnum() or before in "_-") or ord(before) > 127:
        return True
    if before in "_-" and len(prefix) >= 4:
        return True
    if start >= 2 and before in "nrtbf" and text[start - 2] == "\\":
        return True
    if start >= 3 and text[start - 3] == "%":
        return True
    return start >= 6 and text[start - 6 : start - 4] == "\\u"


FAMILIES = tuple(Family(*row) for row in _ROWS)
GENERIC_KEYWORDS = tuple(
    dict.fromkeys(f"{a}{word}{b}" for word in _GENERIC_WORDS.split() for a in "_-" for b in "_-")
)
_DISCORD = re.compile(r"[MNO](?<![\w-][MNO])[\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])")
_AWS_PAIR = re.compile(r"[^\n]{0,80}?(?<![A-Za-z0-9/+])(?P<v>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")


def find_generic(text: str, start: int) -> Iterator[Span]:
    """Find a token of an unknown vendor around the word that names its kind."""
    first = start
    while (
        first > 0 and start - first < 22 and (text[first - 1].isalnum() or text[first - 1] in "_-")
    ):
        first -= 1
    found = _GENERIC.match(text, first)
    if found is None:
        return
    token = found.group()
    if token.lower().startswith(("pk_", "pk-", "pub", "anon")):
        return
    tail = re.split(r"[_-]", token)[-1] if "_" in token or "-" in token else token
    if (
        len(tail) >= 16
        and any(c.isdigit() for c in tail)
        and len(set(tail)) >= 8
        and not _is_sample(token)
    ):
        yield Span(first, found.end(), "token")


def find_discord(text: str) -> Iterator[Span]:
    """Find Discord bot tokens, which have a shape but no prefix."""
    for found in _DISCORD.finditer(text):
        if any(c.isdigit() for c in found.group()):
            yield Span(found.start(), found.end(), "discord")


def find_aws_secret_after(text: str, end: int) -> Iterator[Span]:
    """Find the secret half that stands on the same line as an access key id."""
    found = _AWS_PAIR.match(text, end)
    if found and not _HEX_PART.fullmatch(found.group("v")):
        yield Span(found.start("v"), found.end("v"), "aws_secret")
