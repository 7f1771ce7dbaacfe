/* Search that needs no server: a page opened from disk may neither start workers nor fetch files, so the engine (lunr.js) and the index
 * (index.js, which sets keyquorumIndex) are scripts, loaded by the search page alone. */
(function () {
  "use strict";
  var results = document.getElementById("mkdocs-search-results");
  var field = document.getElementById("mkdocs-search-query");
  if (!results || !field) {
    return;
  }
  var documents = {};
  var index = null;

  function load(name, then) {
    var script = document.createElement("script");
    script.src = base_url + "/search/" + name;
    script.onload = then;
    script.onerror = function () {
      results.textContent = "The search index is missing: " + script.src;
    };
    document.head.appendChild(script);
  }

  function asked() {
    var found = /[?&]q=([^&]*)/.exec(window.location.search);
    return found ? decodeURIComponent(found[1].replace(/\+/g, "%20")) : "";
  }

  function excerpt(text, words) {
    var lower = text.toLowerCase();
    var at = words.map(function (word) { return lower.indexOf(word); }).filter(function (i) { return i >= 0; });
    var start = at.length ? Math.max(0, Math.min.apply(null, at) - 60) : 0;
    return (start ? "… " : "") + text.slice(start, start + 240) + (start + 240 < text.length ? " …" : "");
  }

  function find(text) {
    var words = lunr.tokenizer(text).map(String);
    if (!words.length) {
      return [];
    }
    return index.query(function (query) {
      words.forEach(function (word) {
        query.term(word, { boost: 10 });
        query.term(word, { usePipeline: false, wildcard: lunr.Query.wildcard.TRAILING });
      });
    }).map(function (hit) { return { page: documents[hit.ref], words: words }; });
  }

  function show() {
    var found = find(field.value);
    while (results.firstChild) {
      results.removeChild(results.firstChild);
    }
    if (!found.length) {
      results.textContent = field.value ? "No results found" : "";
    }
    found.slice(0, 50).forEach(function (hit) {
      var article = document.createElement("article");
      var heading = document.createElement("h3");
      var link = document.createElement("a");
      var text = document.createElement("p");
      link.href = base_url + "/" + hit.page.location;
      link.textContent = hit.page.title;
      text.textContent = excerpt(hit.page.text, hit.words);
      heading.appendChild(link);
      article.appendChild(heading);
      article.appendChild(text);
      results.appendChild(article);
    });
  }

  load("lunr.js", function () {
    load("index.js", function () {
      lunr.tokenizer.separator = new RegExp(keyquorumIndex.config.separator);
      index = lunr(function () {
        var builder = this;
        builder.ref("location");
        builder.field("title", { boost: 5 });
        builder.field("text");
        keyquorumIndex.docs.forEach(function (page) {
          builder.add(page);
          documents[page.location] = page;
        });
      });
      field.value = asked();
      field.addEventListener("keyup", show);
      show();
    });
  });
})();
