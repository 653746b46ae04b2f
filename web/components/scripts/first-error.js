// The focus goes to what the person has to correct: the first wrong field, or what the page says.
(document.querySelector('[aria-invalid="true"]') ?? document.querySelector('main > .problem'))?.focus();
