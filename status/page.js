"use strict";
(() => {
  const [live, verdict, copies, panel, filter, tail, count, answer] =
    ["live", "verdict", "copies", "panel", "filter", "tail", "count", "answer"].map((id) => document.getElementById(id));
  const rows = new Map([...copies.children].map((row) => [row.dataset.name, row]));
  const sent = new Map([...rows].map(([name, row]) => [name, row.outerHTML])); // rows as they came
  const focusable = "a, button, [tabindex]";
  const most = 200; // changes shown
  const title = document.title;
  let ahead = 0; // of the server's clock
  let seen = 0; // changes
  let source; // of frames
  let last = {}; // parts that were sent
  let opened = null; // the name of the copy whose panel gets the focus once it is there

  // The choice of copies is behind the # of the address, in the words of a query.
  const choice = () => new URLSearchParams(location.hash.slice(1));
  const choose = (next) => {
    if (next.toString() === choice().toString()) return;
    history.pushState(null, "", location.pathname + location.search + (next.size ? "#" + next : ""));
    follow();
  };
  // adopt takes over the choice of a page without scripts.
  const adopt = () => {
    const query = new URLSearchParams(location.search);
    const next = choice();
    for (const key of ["q", "state", "rows", "copy"]) {
      if (query.get(key) && !next.has(key)) next.set(key, query.get(key));
      query.delete(key);
    }
    history.replaceState(null, "", location.pathname + (query.size ? "?" + query : "") + (next.size ? "#" + next : ""));
  };
  const toShow = () => choice().get("copy") || null;

  const duration = (seconds) => {
    const s = Math.max(0, Math.round(seconds));
    if (s < 120) return s + "\u00a0s";
    if (s < 7200) return Math.round(s / 60) + "\u00a0min";
    return s < 172800 ? Math.round(s / 3600) + "\u00a0h" : Math.round(s / 86400) + "\u00a0days";
  };
  const clock = (at) => new Date(at).toLocaleTimeString([], { hourCycle: "h23" });
  const shown = (kind, at) => {
    const past = (Date.now() - ahead - at) / 1000;
    switch (kind) {
      case "for": return duration(past);
      case "at": return clock(at) + " (" + duration(past) + ")";
      case "next": return past < -0.5 ? "in " + duration(-past) : "now";
    }
    return duration(past) + " ago";
  };
  const age = () => {
    for (const time of document.querySelectorAll("time")) {
      const at = Date.parse(time.dateTime);
      const text = shown(time.className, at);
      if (time.textContent === text) continue;
      time.textContent = text;
      time.title = new Date(at).toLocaleString();
    }
  };
  const element = (name, text, className) => {
    const made = document.createElement(name);
    made.textContent = text;
    if (className) made.className = className;
    return made;
  };

  // refocus has a change keep the focus at what reads the same.
  const refocus = (box, change) => {
    const held = box.contains(document.activeElement) ? document.activeElement : null;
    change();
    if (!held) return;
    const same = [...box.querySelectorAll(focusable)].filter((e) => e.tagName === held.tagName);
    (same.find((e) => e.textContent === held.textContent) || same[0])?.focus({ preventScroll: true });
  };
  // selecting: a person selects text in it, which a change would take away.
  const selecting = (box) => {
    const selection = getSelection();
    return !selection.isCollapsed && box.contains(selection.anchorNode);
  };
  const parts = (news) => {
    Object.assign(last, news);
    for (const [id, html] of Object.entries(last)) {
      const box = document.getElementById(id);
      if (box.html === html || selecting(box)) continue;
      box.html = html;
      refocus(box, () => { box.innerHTML = html; });
    }
    const name = panel.querySelector("h2")?.textContent;
    for (const row of copies.children) row.classList.toggle("open", row.querySelector("a").textContent === name);
    if (opened === null || opened !== name) return;
    panel.querySelector("h2").focus();
    opened = null;
  };
  const replace = (name, html) => {
    if (sent.get(name) === html) return; // of the page, or of the stream before
    sent.set(name, html);
    const template = document.createElement("template");
    template.innerHTML = html;
    const row = template.content.firstElementChild;
    const old = rows.get(name);
    rows.set(name, row);
    if (!old) return;
    const focused = old.contains(document.activeElement);
    old.replaceWith(row);
    if (focused) row.querySelector("a").focus({ preventScroll: true });
  };
  const arrange = (order) => {
    const wanted = new Set(order);
    for (const [name, row] of rows) {
      if (wanted.has(name)) continue;
      row.remove();
      rows.delete(name);
      sent.delete(name);
    }
    let next = copies.firstElementChild;
    for (const name of order) {
      const row = rows.get(name);
      if (row === next) {
        next = row?.nextElementSibling;
      } else if (row) {
        const focused = row.contains(document.activeElement);
        copies.insertBefore(row, next);
        if (focused) row.querySelector("a").focus({ preventScroll: true });
      }
    }
  };

  const difference = async (row, button, number) => {
    const shown = row.querySelector("pre");
    button.setAttribute("aria-expanded", String(!shown));
    if (shown) return shown.remove();
    const block = element("pre", "…");
    block.tabIndex = 0;
    row.append(block);
    try {
      block.textContent = await (await fetch("?difference=" + number)).text();
    } catch (error) {
      block.textContent = String(error);
    }
  };
  const change = (c) => {
    const row = element("li", "");
    row.append(element("span", clock(c.at)), element("span", c.op, c.op), element("span", c.copy), element("b", c.key));
    if (tail.dataset.differences === "true" && c.op === "modified") {
      const button = element("button", "Difference");
      button.setAttribute("aria-expanded", "false");
      button.addEventListener("click", () => difference(row, button, c.number));
      row.append(button);
    }
    return row;
  };
  let order = [...rows.keys()];
  const show = (frame) => {
    ahead = Date.now() - Date.parse(frame.at);
    for (const [name, html] of Object.entries(frame.rows || {})) replace(name, html);
    order = frame.order || order;
    if (frame.order || frame.rows) arrange(order);
    parts(frame.parts);
    const well = verdict.firstElementChild.classList.contains("synced");
    document.title = well ? title : "(!) " + title;
    if (frame.changes) {
      tail.querySelector(":scope > .none")?.remove();
      seen += frame.changes.length + (frame.left || 0);
      if (frame.left) tail.prepend(element("li", "and " + frame.left + " more", "none"));
      for (const c of frame.changes) tail.prepend(change(c));
      while (tail.children.length > most) tail.lastElementChild.remove();
      count.textContent = seen + " since the page was opened";
    }
    live.textContent = "live";
    document.body.classList.remove("lost");
    age();
  };
  const follow = () => {
    source?.close();
    const query = new URLSearchParams(location.search);
    for (const [key, value] of choice()) query.set(key, value);
    const mine = source = new EventSource(location.pathname + "?" + query);
    source.onmessage = (event) => show(JSON.parse(event.data));
    source.onerror = () => {
      live.textContent = "not connected: the page stands still";
      document.body.classList.add("lost");
      document.title = "(?) " + title;
      if (mine.readyState === EventSource.CLOSED) setTimeout(() => mine === source && follow(), 5000); // such as 503
    };
  };

  let typing;
  const search = () => {
    const next = choice();
    next.delete("rows");
    if (filter.q.value) next.set("q", filter.q.value);
    else next.delete("q");
    choose(next);
  };
  filter.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(search, 200);
  });
  document.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (event.target === filter) return search();
    answer.hidden = false;
    answer.textContent = "Verifying: this takes as long as a list, and up to three minutes on a quiet server.";
    try {
      answer.textContent = await (await fetch(event.target.action, { method: "POST" })).text();
    } catch (error) {
      answer.textContent = String(error);
    }
  });
  const clip = (button) => {
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = document.execCommand("copy") ? "Copied" : "Selected"; // navigator.clipboard wants TLS
    setTimeout(() => { getSelection().removeAllRanges(); button.textContent = "Copy"; }, 2000);
  };
  document.addEventListener("click", (event) => {
    if (event.target.matches("button.copy")) return clip(event.target);
    const link = event.target.closest('a[href^="?"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    let next = new URLSearchParams(link.getAttribute("href"));
    if (copies.contains(link)) { // all viewers share the rows
      const copy = next.get("copy");
      next = choice();
      next.set("copy", copy);
    }
    if (next.has("copy")) opened = link.textContent;
    choose(next);
  });
  document.addEventListener("keydown", (event) => {
    const row = document.activeElement.closest("#copies tr");
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (row && step) {
      event.preventDefault();
      row[step]?.querySelector("a").focus();
    } else if (event.key === "/" && !event.target.matches("input")) {
      event.preventDefault();
      filter.q.focus();
    } else if (event.key === "Escape" && toShow() && !event.target.matches("input")) {
      const next = choice();
      rows.get(toShow())?.querySelector("a").focus();
      next.delete("copy");
      choose(next);
    }
  });
  addEventListener("hashchange", () => {
    const q = choice().get("q") || "";
    if (document.activeElement !== filter.q) filter.q.value = q;
    follow();
  });

  adopt();
  document.body.classList.add("scripted");
  filter.q.value = choice().get("q") || filter.q.value;
  setInterval(age, 1000);
  age();
  follow();
})();
