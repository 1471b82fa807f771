// Requests to the server. The token is kept in this module's memory and nowhere else.

import { byId } from "./dom.js";

let token = null;
let accepted = false; // whether the server has accepted the token
let announceToken = () => {};

export class Problem extends Error {
  constructor(status, document) {
    super(document?.detail ?? `The server responded with status ${status}.`);
    this.status = status;
    this.type = document?.type ?? "";
  }
}

const parse = async (response) => {
  const document = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, document);
  return document;
};

export const get = async (path) => parse(await fetch(`/api/v1${path}`));

export const hasToken = () => accepted;

// Calls `announce` when the server has accepted the token.
export const onToken = (announce) => (announceToken = announce);

const accept = () => {
  if (accepted) return;
  accepted = true;
  announceToken();
};

const reject = () => {
  token = null;
  accepted = false;
};

// Reads with the token, without asking for it.
export const getWithToken = async (path) =>
  parse(await fetch(`/api/v1${path}`, { headers: { Authorization: `Bearer ${token}` } }));

// The same, and asks for the token until the answer is right; returns null if the user cancels.
export const getPrivate = async (path, isRight) => {
  let wrong = false;
  while (token !== null || (await askForToken(wrong))) {
    const document = await getWithToken(path);
    if (isRight(document)) {
      accept();
      return document;
    }
    reject();
    wrong = true;
  }
  return null;
};

const send = (path, body) =>
  fetch(`/api/v1${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

// Asks for the token until it is right; returns null if the user cancels.
export const post = async (path, body = {}) => {
  let wrong = false;
  while (token !== null || (await askForToken(wrong))) {
    const response = await send(path, body);
    if (response.status !== 401) {
      accept();
      return parse(response);
    }
    reject();
    wrong = true;
  }
  return null;
};

const askForToken = (wrong) =>
  new Promise((resolve) => {
    const dialog = byId("token-dialog");
    const field = byId("token");
    const end = (given) => {
      token = given;
      field.value = "";
      dialog.close();
      resolve(given !== null);
    };
    byId("token-wrong").hidden = !wrong;
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      end(field.value.trim());
    };
    byId("token-cancel").onclick = () => end(null);
    dialog.oncancel = (event) => {
      event.preventDefault();
      end(null);
    };
    dialog.showModal();
    field.focus();
  });
