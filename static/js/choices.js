/* What a person chose for this browser, in cookies that the server reads too: config/choices.py has the same names. */
const KEPT_S = 365 * 24 * 3600;

/** The value of a choice; an empty text where nothing was chosen. */
export function chosen(name) {
  return document.cookie.match(new RegExp(`(?:^|; )interlock_${name}=([a-z]+)`))?.[1] ?? "";
}

/** Keeps a choice for a year. */
export function choose(name, value) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `interlock_${name}=${value}; Max-Age=${KEPT_S}; Path=/; SameSite=Lax${secure}`;
}
