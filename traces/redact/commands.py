"""Commands and protocols: secrets whose place, not name, gives them away.

`mysql -pX`, `curl -u a:X`, `AUTH X`, `IDENTIFIED BY 'X'`, `.pgpass` lines, output of secret stores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traces.redact.literal import is_password_like, is_placeholder, is_shaped
from traces.redact.marker import Span

# How far behind the command's name its secret can begin.
REACH = 260

_V = r"""(?:"(?P<dq>[^"\n]{3,256})"|'(?P<sq>[^'\n]{3,256})'|(?P<v>[^\s"'`|;&<>]{3,256}))"""


def _rule(label: str, words: str, pattern: str) -> tuple[str, tuple[str, ...], re.Pattern[str]]:
    return label, tuple(words.split(",")), re.compile(pattern.replace("@V", _V), re.IGNORECASE)


# Class, words that start the rule, pattern matched at the word.
_RULES = (
    _rule(
        "password",
        "mysql,mariadb,mycli,mysqldump,mysqladmin,mysqlimport",
        r"(?:mysql\w{0,10}|mariadb(?:-\w+)?|mycli)\b[^\n|;&]{0,200}?(?-i:\s-p)@V",
    ),
    _rule("password", "sshpass", r"sshpass\s+-p\s{0,3}@V"),
    _rule(
        "password",
        "curl,wget,http ,https ,xh ",
        r"(?:curl|wget|https?|xh)\b[^\n|;]{0,240}?\s(?:-u|--user|-a|--auth|--proxy-user|-U)(?:\s{1,3}|=)[\"']?[^\s:\"'$]{1,80}:(?P<v>[^\s\"'$]{3,200})",
    ),
    _rule(
        "password",
        "redis-cli,valkey-cli,keydb-cli",
        r"(?:redis|valkey|keydb)-cli\b[^\n|;]{0,120}?\s(?:-a|--pass)\s{1,3}@V",
    ),
    _rule(
        "password",
        "openssl",
        r"openssl\b[^\n|;]{0,200}?\s(?:-k\s|-(?:passin|passout|pass)\s{1,3}[\"']?pass:)\s{0,2}@V",
    ),
    _rule("password", "pass:", r"pass:@V"),
    _rule("password", "htpasswd", r"htpasswd\s+-\w{0,6}b\w{0,6}\s+\S{1,120}\s+\S{1,80}\s+@V"),
    _rule(
        "password",
        "smbclient,mount.cifs,rpcclient,net rpc,crackmapexec,nxc ,netexec,impacket,evil-winrm,wmic",
        r"[\w.]{3,12}\b[^\n]{0,160}?\s(?:-U\s+[\"']?[\w.\\/-]{1,80}%|-p\s{1,3})@V",
    ),
    _rule(
        "token",
        "vault login,doctl auth init",
        r"(?:vault\s+login|doctl\s+auth\s+init)(?:\s+-(?!t|method)\S{1,60}){0,3}\s+(?:-t\s+|--access-token\s+|token=)?(?!-|\w+=)@V",
    ),
    _rule(
        "token",
        "operator unseal,add-authtoken,authtoken ",
        r"(?:operator\s+unseal|(?:add-)?authtoken)\s+(?!-)@V",
    ),
    _rule(
        "password",
        "mc alias,mc config",
        r"mc\s+(?:alias\s+set|config\s+host\s+add)\s+\S{1,60}\s+\S{1,200}\s+\S{3,128}\s+@V",
    ),
    _rule("password", "rootpw", r"rootpw\s+(?:--\w+\s+){0,3}(?!-)@V"),
    _rule(
        "password",
        "kinit,passwd,sudo,cryptsetup,gpg,su ,chpasswd",
        r"\w{2,10}\b[^\n|;]{0,80}<<<\s{0,2}@V",
    ),
    _rule(
        "cookie",
        "curl,wget",
        r"(?:curl|wget)\b[^\n|;]{0,240}?\s(?:-b|--cookie)(?:\s{1,3}|=)[\"']?[\w.-]{1,64}=(?P<v>[^\s\"';]{6,4096})",
    ),
    _rule(
        "password_hash",
        "hashcat,john ",
        r"(?:hashcat|john)\b[^\n|;]{0,120}?\s(?P<v>[0-9a-fA-F]{32,128})\b",
    ),
    _rule(
        "password",
        " -p , -pw , -w , -P ",
        r"\s-(?:pw?|w)\s{1,3}[\"']?(?P<v>(?=[^\s\"']{0,64}[a-z])(?=[^\s\"']{0,64}\d)(?=[^\s\"']{0,64}[!#%^&*])[^\s\"'`|;<>/:]{6,64})",
    ),
    _rule("password", "rclone", r"rclone\s[^\n|;]{0,160}?\spass(?:word)?\s@V"),
    _rule(
        "password",
        "impacket,secretsdump,psexec,wmiexec,smbexec,getuserspns,getnpusers",
        r"[\w.-]{5,24}\s[^\n]{0,80}?[\w.-]{1,40}/[\w.-]{1,40}:(?P<v>[^\s@'\"]{3,128})@",
    ),
    _rule(
        "password",
        "user-secrets set",
        r"user-secrets\s+set\s+[\"']?[\w:.-]{0,60}(?:password|secret|key|token|pwd)[\w:.-]{0,20}[\"']?\s+@V",
    ),
    _rule("password", "login", r"login\b[^\n|;]{0,200}?\s-p\s{0,3}@V"),
    _rule(
        "password",
        "ldapsearch,ldapadd,ldapmodify,ldapwhoami,ldapdelete,ldappasswd",
        r"ldap\w{3,8}\b[^\n|;]{0,220}?\s-w\s{0,3}@V",
    ),
    _rule(
        "password",
        "sqlcmd,bcp ,osql,isql,tsql,ipmitool",
        r"(?:sqlcmd|bcp|osql|isql|tsql|ipmitool)\b[^\n|;]{0,220}?(?-i:\s-P)\s{0,3}@V",
    ),
    _rule(
        "password",
        "mongosh,mongo ,mongodump,mongorestore,mongoimport,mongoexport,clickhouse-client,cqlsh,influx ,psql",
        r"\w[\w-]{3,20}[^\n|;]{0,220}?\s(?:-p|--password)\s{1,3}@V",
    ),
    _rule(
        "password",
        "mosquitto_pub,mosquitto_sub",
        r"mosquitto_\w{3}\b[^\n|;]{0,220}?(?-i:\s-P)\s{1,3}@V",
    ),
    _rule("password", "7z ,7za ,7zz ", r"7z\w?(?=\s)[^\n|;]{0,160}?\s-p@V"),
    _rule(
        "password",
        "zip ,unzip ,unrar ,rar ,pdftotext,qpdf,pdftk",
        r"\w{3,9}(?=\s)[^\n|;]{0,160}?(?-i:\s-(?:P\s{1,3}|hp|p))@V",
    ),
    _rule(
        "password",
        "keytool,jarsigner",
        r"(?:keytool|jarsigner)\b[^\n]{0,240}?\s-(?:store|key|srcstore|deststore)pass\s{1,3}@V",
    ),
    _rule(
        "password",
        "rabbitmqctl",
        r"rabbitmqctl\s[^\n|;]{0,60}?(?:add_user|change_password|authenticate_user)\s+\S{1,80}\s+@V",
    ),
    _rule(
        "password",
        "net user,net use",
        r"net\s+(?:user\s+\S{1,80}\s+|use\s+(?:[A-Za-z*]:?\s+)?\\\\\S{1,120}\s+(?:/user:\S{1,80}\s+)?)(?![/\\])@V",
    ),
    _rule("password", "/pass:,/p:,/password:,/rp:,/rp ", r"/(?:pass|p|password|rp)[:\s]{1,2}@V"),
    _rule(
        "password",
        "echo ",
        r"echo\s+(?:-n\s+)?@V\s{0,3}\|\s{0,3}(?:sudo\s+-S|docker\s+login|su\b|passwd\b|cryptsetup|gpg\b|kinit|podman\s+login|helm\s+registry|gh\s+auth|openssl|vault|base64|xclip|pbcopy)",
    ),
    _rule(
        "password",
        "chpasswd",
        r"chpasswd\s{0,3}<<<\s{0,2}[\"']?[\w.-]{1,40}:(?P<v>[^\s\"']{3,128})",
    ),
    _rule(
        "password",
        "echo ",
        r"echo\s+[\"']?[\w.-]{1,40}:(?P<v>[^\s\"':]{3,128})[\"']?\s{0,3}\|\s{0,3}(?:sudo\s+)?chpasswd",
    ),
    _rule(
        "password",
        "convertto-securestring",
        r"ConvertTo-SecureString\s+(?:-String\s+|-AsPlainText\s+|-Force\s+){0,3}@V",
    ),
    _rule(
        "password",
        "identified ",
        r"identified\s+(?:with\s+[\w'\"]{1,40}\s+)?(?:by|as)\s+(?:password\s+|values\s+)?(?:\\{0,3}['\"])(?P<v>[^'\"\n\\]{3,256})",
    ),
    _rule("password", "password ", r"password\s+(?:\\{0,3}'|E')(?P<v>[^'\n\\]{3,256})(?:\\{0,3}')"),
    _rule(
        "password",
        "set password",
        r"set\s+password\b[^\n=']{0,80}=\s{0,3}(?:password\()?\\{0,3}'(?P<v>[^'\n\\]{3,256})",
    ),
    _rule(
        "password",
        "auth ",
        r"(?-i:AUTH)\s+(?:(?!PLAIN|LOGIN|CRAM|NTLM|XOAUTH|GSSAPI|TLS)[\w-]{1,40}\s+)?(?P<v>(?!PLAIN|LOGIN|CRAM|NTLM|XOAUTH|GSSAPI|TLS)[^\s\"']{6,256})",
    ),
    _rule(
        "password",
        "auth plain,auth login,authenticate plain",
        r"auth(?:enticate)?\s+(?:plain|login)\s+(?P<v>[A-Za-z0-9+/]{8,512}={0,2})",
    ),
    _rule("password", "requirepass,masterauth", r"(?:requirepass|masterauth)\s+@V"),
    _rule("password", "pass ", r"(?-i:PASS)\s+(?P<v>[^\s\"']{4,128})(?=\s|$)"),
    _rule("password", "login ", r"(?-i:LOGIN)\s+\S{1,80}\s+@V"),
    _rule(
        "password",
        "enable secret,enable password",
        r"enable\s+(?:secret|password)\s+(?:\d\s+)?(?:level\s+\d+\s+)?@V",
    ),
    _rule(
        "password",
        "username ",
        r"username\s+\S{1,60}\s+(?:privilege\s+\d+\s+)?(?:secret|password)\s+(?:\d\s+)?@V",
    ),
    _rule(
        "secret",
        "snmp-server community,snmpwalk,snmpget,rocommunity,rwcommunity",
        r"(?:snmp-server\s+community\s+|(?:ro|rw)community6?\s+|snmp(?:walk|get)\b[^\n]{0,80}?\s-c\s{0,2})@V",
    ),
    _rule(
        "secret",
        "tacacs-server key,radius-server key,isakmp key,key-string,pre-shared-key",
        r"(?:(?:tacacs|radius)-server\s+key|isakmp\s+key|key-string|pre-shared-key)\s+(?:address\s+\S+\s+key\s+)?(?:\d\s+)?(?:ascii-text\s+)?@V",
    ),
    _rule("password", "wifi:", r"WIFI:(?:[STH]:[^;\n]{0,64};){0,4}P:(?P<v>[^;\n]{4,64})"),
    _rule(
        "password",
        "wifi connect,wifi hotspot,wpa_passphrase",
        r"(?:wifi\s+(?:connect|hotspot)\s[^\n]{0,80}?password|wpa_passphrase\s+[\"']?[\w -]{1,32}?[\"']?)\s+@V",
    ),
    _rule(
        "password",
        "cmdkey,runas,psexec,winrm,xfreerdp,rdesktop,vncviewer",
        r"\w{5,10}\b[^\n]{0,160}?\s(?:/pass:|/p:|-p\s{0,2}|-p:)@V",
    ),
    _rule(
        "password",
        "expect ,send ,sendline",
        r"send(?:line)?\s*\(?\s{0,2}(?:--\s+)?[\"'](?P<v>[^\"'\\\n]{6,64})\\r",
    ),
    _rule(
        "secret",
        "secret set,secrets set,secret put,secret create,secrets create,secret add,config:set,variable set,env add,kv put,ssm put-parameter,create-secret,put-secret-value,keyvault secret set",
        r"[\w:-]{2,12}(?:\s[\w-]{2,24}){0,3}[^\n]{0,140}?\s(?:--body|--value|--secret-string|-b|--data|--plaintext)(?:\s{1,3}|=)@V",
    ),
    _rule(
        "otp_code",
        "verification code,security code,one-time password,one-time code,one time password,login code,2fa code,otp is,otp:,otp code,código de verificación,bestätigungscode,code de vérification,验证码,認証コード,인증번호,код подтверждения",
        r"[^\W\d]{2,20}(?:[ -][^\W\d]{1,20}){0,3}(?:2fa code)?\s{0,2}(?:is|lautet|es|est|:|\uff1a|=|是|为|は|는)?\s{0,2}[:\uff1a]?\s{0,2}(?P<v>\d{3}[ -]?\d{3,5}|\d{4,8})(?!\d|[.,]\d)",
    ),
    _rule(
        "pin",
        "pin is,pin:,pin code,pin-code,pin ist,pin =,door code,access code,zugangscode,code pin,pin es,пин-код,暗証番号",
        r"[^\W\d]{2,12}(?:[ -][^\W\d]{1,12}){0,2}\s{0,2}[:=\uff1a]?\s{0,2}(?:is|ist|es|est|は)?\s{0,2}[:\uff1a]?\s{0,2}(?P<v>\d{4,12})(?!\d|[.,:/-]\d)",
    ),
    _rule(
        "secret",
        "seed phrase,mnemonic,recovery phrase,seed words,secret phrase,seedphrase",
        r"[a-z]{4,10}(?:[ -][a-z]{5,6})?[^\na-z]{0,8}(?:(?:is|are|for the wallet|for my wallet)\s?:?\s?)?[\"'`:=\s]{0,6}(?P<v>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
    ),
    _rule(
        "otp_seed",
        "totp,2fa,mfa,authenticator,key manually,manually,setup key,manual entry,qr code,otp seed,otp secret,two-factor,base32 secret,one-time",
        r"[\w-]{3,16}\b[^\n]{0,60}?(?-i:(?<![A-Za-z0-9])(?P<v>[A-Z2-7]{16,64}|[A-Z2-7]{4}(?: [A-Z2-7]{4}){3,15}|[a-z2-7]{4}(?: [a-z2-7]{4}){3,15})(?![A-Za-z0-9]))",
    ),
)
COMMAND_WORDS: dict[str, list[int]] = {}
for _index, _rule_row in enumerate(_RULES):
    for _word in _rule_row[1]:
        COMMAND_WORDS.setdefault(_word, []).append(_index)

# These say nothing of the value's shape, so the value itself must look like a password.
_NEEDS_SHAPE = frozenset(
    {
        "auth ",
        "pass ",
        "login ",
        "login",
        "echo ",
        "send ",
        "expect ",
        "sendline",
        "/p:",
        "/rp ",
        "psql",
        "mongo ",
    }
)


def find_command(text: str, start: int, word: str) -> Iterator[Span]:
    """Find the secret of a command whose name `word` is at `start`."""
    if (
        start
        and (text[start - 1].isalnum() or text[start - 1] == "_")
        and word.isascii()
        and not _escaped(text, start)
    ):
        return
    for index in COMMAND_WORDS[word]:
        label, _, pattern = _RULES[index]
        found = pattern.match(text, start)
        if found is None:
            continue
        group = next(name for name in ("v", "dq", "sq") if found.groupdict().get(name))
        value = found[group]
        if _is_value(value, word, label):
            yield Span(found.start(group), found.end(group), label)


def _escaped(text: str, start: int) -> bool:
    return start >= 2 and text[start - 2] == "\\" and text[start - 1] in "nrt"


def _is_value(value: str, word: str, label: str) -> bool:
    if label in ("otp_code", "pin"):
        return True
    if label == "otp_seed":
        return any(c.isdigit() for c in value) or " " in value or len(value) in (16, 26, 32, 52)
    if label == "secret" and " " in value:
        return True
    if is_placeholder(value) or value.startswith(("-", "$", "/", "%", "~", "./")) or "://" in value:
        return False
    if re.fullmatch(r"\d{1,5}(?::\d{1,5}){0,2}", value):
        return False
    if word in _NEEDS_SHAPE:
        return is_password_like(value)
    return True


CALL_WORDS = (
    "auth=(", "auth: [", "login(", "connect(", "getconnection(", "basicauth(", "basic_auth(", "authenticate(", "credentials(",
    "networkcredential(", "credential(", "authentication(", "createuser(", "create_user(", "set_password(", "setpassword(", "auth(",
)  # fmt: skip
_CALL = re.compile(r"[^\n()]{2,24}[(\[](?P<args>[^\n()]{4,240})")
_ARGUMENT = re.compile(r"""(?P<q>["'`])(?P<v>[^"'`\n]{4,128})(?P=q)""")


def find_call(text: str, start: int) -> Iterator[Span]:
    """Find passwords among the arguments of a call that logs in or connects."""
    found = _CALL.match(text, start)
    if found is None:
        return
    for argument in _ARGUMENT.finditer(text, *found.span("args")):
        value = argument["v"]
        if (
            is_password_like(value)
            and "@" not in value[1:-1]
            and not re.fullmatch(r"[\w.-]+:\d{2,5}|\d[\d.:]+", value)
        ):
            yield Span(argument.start("v"), argument.end("v"), "password")


_PGPASS_PORT = re.compile(r":(?:\d{2,5}|\*):")
_PGPASS_HEAD = re.compile(r"(?:^|[\n\"'`]|\\n)[\w.*-]{1,100}\Z")
_PGPASS_TAIL = re.compile(
    r"[\w*-]{1,64}:[\w*-]{1,64}:(?P<v>[^\s:\"'`/]{4,128})(?=\s|\\n|[\"'`]|\Z)"
)
_NET_NTLM = re.compile(
    r"[\w.$-]{1,64}::[\w.-]{0,64}:(?P<v>[0-9a-fA-F]{16}:[0-9a-fA-F]{32}:[0-9a-fA-F]{16,4096})"
)
_SHADOW = re.compile(
    r"(?:^|(?<=\n)|(?<=\\n))[\w.-]{1,40}:\d{1,6}:(?P<v>[0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::",
    re.MULTILINE,
)
_CHAP = re.compile(
    r"^\S{1,60}[ \t]+(?:\*|\S{1,60})[ \t]+\"(?P<v>[^\"\n]{4,64})\"[ \t]+(?:\*|[\d.]+)", re.MULTILINE
)


def find_lines(text: str) -> Iterator[Span]:
    """Find lines of password files: `.pgpass`, pwdump, chap-secrets."""
    if ":" in text:
        yield from _pgpass(text)
        if ":::" in text:
            for found in _SHADOW.finditer(text):
                yield Span(found.start("v"), found.end("v"), "password_hash")
        if "::" in text:
            for found in _NET_NTLM.finditer(text):
                yield Span(found.start("v"), found.end("v"), "password_hash")
    if '* "' in text or '*\t"' in text or '" *' in text or '"\t*' in text:
        for found in _CHAP.finditer(text):
            if is_password_like(found["v"]):
                yield Span(found.start("v"), found.end("v"), "password")


def _pgpass(text: str) -> Iterator[Span]:
    for port in _PGPASS_PORT.finditer(text):
        found = _PGPASS_TAIL.match(text, port.end())
        if found is None or not _PGPASS_HEAD.search(
            text[max(0, port.start() - 104) : port.start()]
        ):
            continue
        if any(c.isalpha() for c in found["v"]) and not is_placeholder(found["v"]):
            yield Span(found.start("v"), found.end("v"), "password")


# Commands that print one secret and nothing else: the next line is it.
_PRINTS = re.compile(
    r"""(?ix)(?:
      kubectl\s[^\n]{0,160}?(?:secret|create\ token)[^\n]{0,160} | aws\s+(?:secretsmanager|ssm)\s[^\n]{0,200} | vault\s+(?:kv\s+get|read|token\s+create|print\s+token)[^\n]{0,30}\s-field=[^\n]{0,120}
      | gcloud\s+(?:secrets\s+versions\s+access|auth\s+(?:application-default\s+)?print-(?:access|identity)-token)[^\n]{0,120}
      | az\s+(?:keyvault\s+secret\s+show|account\s+get-access-token)[^\n]{0,160}(?:tsv)[^\n]{0,20} | op\s+(?:read|item\s+get)\s[^\n]{0,120}
      | (?<![\w-])pass\s+(?:show\s+)?[\w/.-]{2,60} | gopass\s+(?:show\s+)?-?[\w/.\ -]{2,60} | bw\s+get\s+(?:password|totp)\s[^\n]{0,80}
      | security\s+find-(?:generic|internet)-password\s[^\n]{0,120}-\w{0,4}w[^\n]{0,40} | doppler\s+secrets\s+get\s[^\n]{0,80}--plain[^\n]{0,20}
      | gh\s+auth\s+token[^\n]{0,30} | heroku\s+(?:auth:token|config:get\s[^\n]{2,80}) | chamber\s+read\s[^\n]{0,80} | infisical\s+secrets\s+get\s[^\n]{0,80}--plain[^\n]{0,20}
      | keyctl\s+(?:print|pipe)\s[^\n]{0,40} | secret-tool\s+lookup\s[^\n]{0,80} | pwgen[^\n]{0,40} | openssl\s+rand\s[^\n]{0,40} | docker\s+(?:exec|run|compose\s+exec)[^\n]{0,80}\s(?:cat\s+)?/run/secrets/[^\n]{1,60} | cat\s+(?:/run/secrets/|/var/run/secrets/)[^\n]{1,80}
      | terraform\s+output\s+-raw\s[^\n]{0,60} | pulumi\s+config\s+get\s[^\n]{0,60} | ansible-vault\s+decrypt_string[^\n]{0,60} | argocd\s+admin\s+initial-password[^\n]{0,60}
    )\r?\n(?P<v>[^\s"'`]{6,4096})[ \t]{0,4}(?=\r?\n|\Z)"""
)
PRINT_WORDS = (
    "kubectl ", "aws s", "vault ", "gcloud ", "az keyvault", "az account", "op read", "op item", "pass show", "pass ",
    "gopass", "bw get", "security find", "doppler secrets", "gh auth token", "heroku ", "chamber read", "infisical ",
    "secret-tool", "keyctl ", "pwgen", "openssl rand", "/run/secrets/", "docker ", "terraform output", "pulumi config", "argocd admin", "cat /",
)  # fmt: skip


def find_printed(text: str, start: int) -> Iterator[Span]:
    """Find the secret printed on the line after a command that prints one."""
    found = _PRINTS.match(text, start)
    if found is None or is_placeholder(found["v"]):
        return
    value = found["v"]
    if (
        is_password_like(value)
        or is_shaped(value, 12)
        or (value.isalpha() and len(value) >= 8 and value.islower())
    ):
        yield Span(found.start("v"), found.end("v"), "secret")
