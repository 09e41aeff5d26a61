"use strict";
// Everything here is a convenience: without it the page shows the same facts.
(() => {
  const table = document.getElementById("table");
  const rows = table ? [...table.tBodies[0].rows] : [];
  const tools = document.getElementById("tools");
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const filters = [...document.querySelectorAll(".filters button")];
  const stage = document.getElementById("stage");
  let wanted = "";
  let sorted = null;

  // What is shown stands in the address, so that it can be sent to somebody: #status=FAIL&find=bert&stage=concurrent&sort=load+time
  const remember = () => {
    const state = new URLSearchParams();
    if (wanted) state.set("status", wanted);
    if (search.value.trim()) state.set("find", search.value.trim());
    if (stage?.value) state.set("stage", stage.value);
    if (sorted) state.set(sorted.down ? "falling" : "sort", sorted.name);
    history.replaceState(null, "", "#" + (state.size ? state : "models"));
  };

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const notPassed = stage?.value && "stage:" + stage.value;
    let count = 0;
    for (const row of rows) {
      const text = row.cells[0].textContent.toLowerCase() + " " + row.dataset.search + " " + row.dataset.status.toLowerCase();
      const fits = (!wanted || row.dataset.status === wanted) && words.every((word) => text.includes(word)) &&
        (!notPassed || row.dataset.search.split(" ").includes(notPassed));
      row.hidden = !fits;
      count += fits;
    }
    shown.textContent = count + " of " + rows.length + " shown";
  };

  const choose = (status) => {
    wanted = status;
    for (const button of filters) button.setAttribute("aria-pressed", String(button.dataset.status === status));
    filter();
  };

  const find = (words, status, where = "") => {
    search.value = words;
    if (stage) stage.value = [...stage.options].some((option) => option.value === where) ? where : "";
    choose(status);
  };

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.key) return Number(cell.dataset.key);
    const text = cell.textContent.trim();
    return text === "-" ? "" : text;
  };

  const compare = (a, b) => {
    if (a === "" || b === "") return a === b ? 0 : a === "" ? 2 : -2;
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b);
  };

  const sort = (column, direction) => {
    const status = column === table.tHead.rows[0].cells.length - 1;
    const keyed = rows.map((row, order) => [status ? order : valueOf(row, column), row]);
    keyed.sort(([a], [b]) => {
      const order = compare(a, b);
      // What was not measured stands last in both directions.
      return a === "" || b === "" ? order : order * direction;
    });
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  };

  const sortBy = (column, down) => {
    const heads = [...table.tHead.rows[0].cells];
    for (const other of heads) other.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    sort(column, down ? -1 : 1);
    sorted = { name: heads[column].textContent, down };
  };

  const sortable = (head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      sortBy(column, head.getAttribute("aria-sort") === "ascending");
      remember();
    });
  };

  // An id as it stands in the address, or as the browser has encoded it.
  const named = (id) => {
    try {
      return document.getElementById(id) || document.getElementById(decodeURIComponent(id));
    } catch {
      return null;
    }
  };

  const openTarget = () => {
    const asked = location.hash.slice(1);
    const target = asked ? named(asked) : null;
    if (target) {
      for (let item = target.closest("details"); item; item = item.parentElement.closest("details")) item.open = true;
      if (target.closest("details")) target.scrollIntoView();
    } else if (table && asked.includes("=")) {
      const state = new URLSearchParams(asked);
      const name = state.get("falling") || state.get("sort");
      const column = [...table.tHead.rows[0].cells].findIndex((head) => head.textContent === name);
      if (column >= 0) sortBy(column, state.has("falling"));
      const known = filters.some((button) => button.dataset.status === state.get("status"));
      find(state.get("find") || "", known ? state.get("status") : "", state.get("stage") || "");
      document.getElementById("models").scrollIntoView();
    }
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  // Buttons are made when their commands come into sight: a page of 500 models is ready at once.
  const withButton = (line) => {
    const button = document.createElement("button");
    const label = line.querySelector(".label").textContent;
    button.type = "button";
    button.textContent = "copy";
    button.setAttribute("aria-label", "copy the " + label + " command");
    button.addEventListener("click", async () => {
      await copy(line.querySelector("code").textContent);
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
    line.append(button);
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        seen.unobserve(entry.target);
        withButton(entry.target);
      }
    }
  }, { rootMargin: "1000px" });

  // Rows that are stacked or grids are no table to the browser any more; roles keep them one to a screen reader.
  const roles = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  const equip = (part) => {
    for (const line of part.querySelectorAll(".command")) seen.observe(line);
    for (const stacked of part.querySelectorAll(".models, .told")) {
      for (const item of [stacked, ...stacked.querySelectorAll("thead, tbody, tr, td")]) item.setAttribute("role", roles[item.tagName]);
      for (const head of stacked.querySelectorAll("th")) head.setAttribute("role", head.scope === "col" ? "columnheader" : "rowheader");
    }
  };
  equip(document);

  if (table) {
    tools.hidden = false;
    [...table.tHead.rows[0].cells].forEach(sortable);
    search.addEventListener("input", () => {
      filter();
      remember();
    });
    stage?.addEventListener("change", () => {
      filter();
      remember();
    });
    for (const button of filters) {
      button.addEventListener("click", () => {
        choose(button.dataset.status);
        remember();
      });
    }
    for (const link of document.querySelectorAll(".counts a")) link.addEventListener("click", () => find("", link.dataset.status));
    for (const link of document.querySelectorAll("a[data-find]")) link.addEventListener("click", () => find(link.dataset.find, ""));
    filter();
  }
  addEventListener("hashchange", openTarget);
  // A link to what the address names already changes nothing there, and yet should open it again.
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href^="#"]') : null;
    if (link) setTimeout(openTarget);
  });
  openTarget();

  // On paper the models that failed stand open.
  let opened = [];
  addEventListener("beforeprint", () => {
    const failed = [...document.querySelectorAll(".model.bad:not([open])")].slice(0, 40);
    const around = new Set(failed.map((model) => model.closest(".group:not([open])")));
    around.delete(null);
    opened = [...around, ...failed];
    for (const item of opened) item.open = true;
  });
  addEventListener("afterprint", () => {
    for (const item of opened) item.open = false;
  });
})();
