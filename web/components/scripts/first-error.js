// The focus goes to what the person has to correct: the first wrong field, or what the page says. It may be in a closed part.
const wrong = document.querySelector('[aria-invalid="true"]');
wrong?.closest('details')?.setAttribute('open', '');
wrong?.closest('[popover]')?.showPopover();
(wrong ?? document.querySelector('main > .problem'))?.focus();
