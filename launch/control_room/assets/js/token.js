// The token: where it is kept and how a viewer is asked for it. It never stands in an address.

let token = takeToken();
let asking = null;
let declined = false;

// Nobody gave the token, so what needs it was not done.
export class TokenMissing extends Error {
  constructor() {
    super("needs the token");
  }
}

function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    // Out of sight, and out of the history.
    history.replaceState(null, "", `${location.pathname}#now`);
  }
  return given ?? sessionStorage.getItem("token") ?? "";
}

function keep(given) {
  token = given;
  sessionStorage.setItem("token", given);
}

export const currentToken = () => token;

// After `refused`, the token that was sent. One dialog for all requests that wait. Who has
// declined is asked again only for what they do themselves: the page asks the server by itself
// every few seconds, and a dialog that comes back each time cannot be left.
export async function askForToken(refused, { isDeed }) {
  if (refused !== token) return;
  if (declined && !isDeed) throw new TokenMissing();
  asking ??= answer(refused !== "").finally(() => (asking = null));
  await asking;
}

async function answer(wasWrong) {
  const dialog = document.getElementById("ask");
  const input = document.getElementById("token");
  document.getElementById("wrong").hidden = !wasWrong;
  input.value = "";
  // Escape leaves the value as it is, and it may be that of the last time.
  dialog.returnValue = "";
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  const given = dialog.returnValue === "ok" ? input.value.trim() : "";
  keep(given);
  declined = given === "";
  if (declined) throw new TokenMissing();
}
