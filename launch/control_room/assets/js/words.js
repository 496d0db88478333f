// Numbers and times in words.

import { serverNow } from "./api.js";

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export function count(value, digits = 0) {
  if (!isNumber(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// Large numbers short enough for a card: 1.24 M.
export function short(value, digits = 1) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toFixed(2)} G`;
  if (size >= 1e6) return `${+(value / 1e6).toFixed(2)} M`;
  if (size >= 1e4) return `${+(value / 1e3).toFixed(1)} k`;
  if (size >= 100 || Number.isInteger(value)) return count(value);
  return value.toFixed(digits);
}

export function figure(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e4) return short(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 1) return String(+value.toFixed(2));
  if (size === 0) return "0";
  return size >= 1e-3 ? String(+value.toFixed(4)) : value.toExponential(1);
}

export const percent = (value, digits = 0) => (isNumber(value) ? `${(100 * value).toFixed(digits)} %` : "–");

export function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  if (hours) return `${hours} h ${String(minutes).padStart(2, "0")} min`;
  return minutes ? `${minutes} min ${String(whole % 60).padStart(2, "0")} s` : `${whole} s`;
}

export function ago(seconds) {
  const age = serverNow() - seconds;
  return age < 2 ? "now" : `${duration(age)} ago`;
}

export function clock(seconds) {
  if (!isNumber(seconds)) return "";
  const date = new Date(seconds * 1000);
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? time : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}
