"use strict";
// Everything here is a convenience: without it the page shows all but the artifacts, which a file beside it has.
(() => {
  const HEIGHT = 34, SPARE = 12;
  const { columns, status, owners, tones, changes, texts, rows } = JSON.parse(document.getElementById("data").textContent);
  // Of a row: what the columns show, then what only searching, pills and titles need.
  const NAME = 0, OWNER = 1, STATUS = columns.indexOf(status), CAUSES = columns.length, CHANGE = CAUSES + 1, TITLE = CAUSES + 2;
  const view = document.getElementById("window");
  const body = view.querySelector(".artifacts");
  const heads = [...view.querySelectorAll("[role=columnheader]")];
  const search = document.getElementById("search");
  const owner = document.getElementById("owner");
  const shown = document.getElementById("shown");
  const filters = [...document.querySelectorAll(".filters button")];
  const collator = new Intl.Collator(undefined, { numeric: true });
  let words = null; // of every row, made at the first search
  let ranks = null; // of every text, made at the first sorting
  let listed = rows;
  let state = { find: "", owner: "", status: "", sort: "", down: false };

  const said = (row) => {
    words = words || new Map(rows.map((one) => [one, one.map((at) => texts[at]).join("\n").toLowerCase()]));
    return words.get(row);
  };

  const cellOf = (text, kind) => {
    const cell = document.createElement("span");
    cell.setAttribute("role", kind);
    cell.textContent = text;
    cell.title = text;
    return cell;
  };

  const pill = (word, tone) => {
    const mark = document.createElement("span");
    mark.className = "pill " + tone;
    mark.textContent = word;
    return mark;
  };

  const lineOf = (row, at) => {
    const line = document.createElement("div");
    line.className = "artifact";
    line.setAttribute("role", "row");
    line.setAttribute("aria-rowindex", String(at + 2));
    line.style.top = at * HEIGHT + "px";
    columns.forEach((_, column) => {
      const text = texts[row[column]];
      const cell = cellOf(column === STATUS ? "" : text, column === NAME ? "rowheader" : "cell");
      if (column === NAME) {
        cell.className = "name";
        cell.title = texts[row[TITLE]];
      }
      if (column === STATUS) {
        cell.append(pill(text, tones[text]));
        if (texts[row[CHANGE]]) cell.append(" ", pill(texts[row[CHANGE]], changes[texts[row[CHANGE]]]));
      }
      line.append(cell);
    });
    return line;
  };

  const draw = () => {
    const first = Math.max(0, Math.floor(view.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(listed.length, Math.ceil((view.scrollTop + view.clientHeight) / HEIGHT) + SPARE);
    body.replaceChildren(...listed.slice(first, last).map((row, at) => lineOf(row, first + at)));
  };

  const sortedRows = (found) => {
    const column = columns.indexOf(state.sort);
    if (column < 0) return found;
    if (!ranks) {
      const order = texts.map((_, at) => at).sort((a, b) => collator.compare(texts[a], texts[b]));
      ranks = new Uint32Array(texts.length);
      order.forEach((text, rank) => { ranks[text] = rank; });
    }
    const direction = state.down ? -1 : 1;
    return [...found].sort((a, b) => direction * (ranks[a[column]] - ranks[b[column]]));
  };

  const apply = () => {
    const wanted = state.find.toLowerCase().split(/\s+/).filter(Boolean);
    listed = sortedRows(rows.filter((row) =>
      (!state.owner || texts[row[OWNER]] === state.owner) &&
      (!state.status || texts[row[STATUS]] === state.status) &&
      wanted.every((word) => (word.startsWith("cause:") ? texts[row[CAUSES]].toLowerCase().split(" ").includes(word.slice(6)) : said(row).includes(word)))));
    body.style.height = listed.length * HEIGHT + "px";
    view.setAttribute("aria-rowcount", String(listed.length + 1));
    view.scrollTop = 0;
    shown.textContent = listed.length + " of " + rows.length + " shown";
    for (const button of filters) button.setAttribute("aria-pressed", String(button.dataset.status === state.status));
    heads.forEach((head, column) => {
      if (columns[column] === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const number = String(owners.indexOf(state.owner));
    for (const part of document.querySelectorAll("[data-owners]")) {
      part.hidden = Boolean(state.owner) && !part.dataset.owners.split(" ").includes(number);
    }
    draw();
  };

  // What is shown stands in the address, so that it can be sent to somebody: #owner=ads is the page of that owner.
  const change = (next) => {
    state = { ...state, ...next };
    const address = new URLSearchParams(Object.entries(state).filter(([, value]) => value).map(([key, value]) => [key, String(value)]));
    history.replaceState(null, "", "#" + (String(address) || "artifacts"));
    apply();
  };

  const read = () => {
    const asked = location.hash.slice(1);
    if (asked && !asked.includes("=")) return;
    const address = new URLSearchParams(asked);
    state = { find: address.get("find") || "", owner: address.get("owner") || "", status: address.get("status") || "", sort: address.get("sort") || "", down: address.get("down") === "true" };
    search.value = state.find;
    owner.value = owners.includes(state.owner) ? state.owner : "";
    state.owner = owner.value;
    apply();
  };

  for (const name of owners) owner.add(new Option(name, name));
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => change({ sort: columns[column], down: state.sort === columns[column] && !state.down }));
  });
  search.addEventListener("input", () => change({ find: search.value.trim() }));
  owner.addEventListener("change", () => change({ owner: owner.value }));
  for (const button of filters) button.addEventListener("click", () => change({ status: button.dataset.status }));
  for (const link of document.querySelectorAll("a[data-find]")) {
    link.addEventListener("click", () => {
      search.value = link.dataset.find;
      change({ find: link.dataset.find, status: "" });
      setTimeout(() => document.getElementById("artifacts").scrollIntoView());
    });
  }
  view.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  addEventListener("resize", draw);
  addEventListener("hashchange", read);
  document.getElementById("tools").hidden = false;
  view.hidden = false;
  apply();
  if (location.hash.includes("=")) read();
})();
