/**
 * Lines that phones and free mail programs add to a message: `Sent from my iPhone`, `Get Outlook for iOS`. The author
 * did not write them. The patterns match whole lines, so that the same words within a sentence are not removed.
 */
const MAX_CHARACTERS = 160;

const DEVICE = String.raw`(?:[^.!?]|\.(?=\S)){1,70}[.!]?`;
/**
 * Anything may follow "sent from my". Without "my", a product must follow, because `Sent from the warehouse` is a
 * sentence.
 */
const PRODUCT = String.raw`(?:(?:the |der |dem |de |la |il )?(?:new |neuen )?)(?:all.?new )?(?:iphone|ipad|ios|apple|android|samsung|galaxy|huawei|xiaomi|redmi|honor|oneplus|oppo|sony|xperia|nokia|blackberry|motorola|moto|pixel|google|gmail|outlook|mail\b|windows|yahoo|aol|proton|protonmail|spark|superhuman|mailspring|airmail|canary|edison|bluemail|blue mail|newton|polymail|front|hey|zoho|fastmail|tutanota|tuta|gmx|web\.de|t-online|k-9|fairemail|nine|boxer|typeapp|mymail|mail\.ru|yandex|thunderbird|roundcube|em client|myMail|workspace|foxmail|qq|网易|163|126|surface|htc|lg\b|smartphone|mobile|handy|mobil|telefon|phone|mailbox|vivaldi|opera|postbox|evolution|kmail|spike|missive|shortwave|mimestream|hotmail|cloudmagic|acompli|sparrow|inbox|tablet|verizon|t-mobile|at&t|vodafone|telstra|my )`;

const MOBILE = `(?:iphone|ipad|ipod|android|phone|cell|mobile|smartphone|tablet|handheld|blackberry|galaxy|samsung|pixel|watch)`;

const PATTERNS = [
  // English
  `sent (?:wirelessly )?(?:from|via|with|using|by) (?:my|mein|our|an?) ${DEVICE}`,
  `sent (?:wirelessly )?(?:from|via|with|using|by) ${PRODUCT}.{0,80}`,
  `sent (?:on the go|from mobile|from a mobile device|on the move).{0,60}`,
  `(?:please )?(?:excuse|forgive|pardon) (?:any |my |the )?(?:typos|brevity|spelling|mistakes|errors).{0,60}`,
  `typed (?:with|on) .{1,40}(?:thumbs?|phone|keyboard|device).{0,30}`,
  `(?:(?:sent )?from|via) my ${MOBILE}.{0,40}`,
  String.raw`[\p{L}'’-]{1,20}(?: [\p{L}'’-]{1,20})? from (?:my )?(?:mobile|phone|iphone|ipad|tablet)[.!]?`,
  `sorry for (?:any |my |the )?(?:typos|brevity|spelling).{0,60}`,
  // German
  `(?:gesendet|verschickt|gesandt|geschickt|diese nachricht wurde) (?:von|mit|über|via|vom|aus) .{1,60}(?:gesendet)?[.!]?`,
  `von (?:meinem|unserem|mein|einem) .{1,60} (?:gesendet|verschickt|versendet|aus gesendet)[.!]?`,
  String.raw`von (?:outlook|yahoo|samsung|iphone|ipad|android|gmx|web\.de|mobil)\S?.{0,60} (?:gesendet|verschickt|versendet)[.!]?`,
  `von unterwegs (?:aus )?(?:gesendet|verschickt|versendet|geschrieben)[.!]?`,
  `(?:bitte )?(?:entschuldig|verzeih)(?:e|en|t|ung)? (?:sie |für )?(?:bitte )?(?:die |meine |mögliche |etwaige |eventuelle )?(?:kürze|tippfehler|schreibfehler|rechtschreibfehler|knappe).{0,60}`,
  // French
  `envoy[ée]e? (?:depuis|de|à partir de|avec|par|via) (?:mon|ma|mes|l['’]|la|le|un|une|outlook|yahoo|mail|proton|gmail|spark|samsung|orange|android|courrier|windows).{0,70}`,
  `(?:merci (?:de bien vouloir |d['’])|veuillez |pardon pour )?(?:excuser|excusez|pardonner)? ?(?:la |ma |les |mes |d['’]éventuelles )(?:brièveté|concision|fautes|erreurs|coquilles).{0,60}`,
  // Spanish
  `enviado (?:desde|con|a través de|mediante) (?:mi|el|la|un|una|outlook|yahoo|mail|correo|proton|gmail|spark|samsung|android|windows|huawei|dispositivo).{0,70}`,
  `(?:por favor,? )?(?:disculp|perdon)(?:a|e|en|ad|ar) (?:la |las |los |mi |mis )?(?:brevedad|errores|faltas|erratas).{0,60}`,
  // Portuguese
  `enviad[oa] (?:do|da|de|pelo|pela|a partir do|com|via) (?:meu|minha|um|uma|outlook|yahoo|e-mail|email|proton|gmail|spark|samsung|android|iphone|ipad|windows|correio|huawei|smartphone|telem[óo]vel).{0,70}`,
  `(?:por favor,? )?(?:desculpe|desculpa|desculpem|perdoe) (?:a |os |as |pela |pelos |qualquer |eventuais )?(?:brevidade|erros?|falhas).{0,60}`,
  // Dutch
  `(?:verzonden|verstuurd) (?:vanaf|vanuit|met|via|van) (?:mijn|een|outlook|yahoo|mail|proton|gmail|samsung|android|iphone|ipad|windows|ziggo|kpn).{0,70}`,
  `(?:excuses? voor|sorry voor|excuseer|mijn excuses voor) (?:de |het |mijn |eventuele )?(?:beknoptheid|typefouten|tikfouten|spelfouten|korte).{0,60}`,
  // Italian
  `inviat[oa] (?:da|dal|dalla|dall['’]|con|tramite) ?(?:mio|mia|il|un|outlook|yahoo|mail|posta|proton|gmail|samsung|android|iphone|ipad|windows|libero|telefono|smartphone|dispositivo|cellulare|app).{0,70}`,
  `(?:scusa|scusate|scusi|scusami|perdona|perdonate) (?:la |gli |per la |per gli |eventuali )?(?:brevità|errori|refusi).{0,60}`,
  // Polish, Swedish, Norwegian, Danish, Finnish
  `wysłan[eoay] (?:z|ze|za pomocą|przez|zem|przy użyciu) .{1,60}`,
  `skickat (?:från|med|via|iphone) ?(?:min|mitt|en|outlook|yahoo|mail|e-post|samsung|android|proton|iphone|ipad|gmail)?.{0,60}`,
  `sendt (?:fra|via|med) (?:min|mitt|mit|en|outlook|yahoo|mail|e-post|samsung|android|proton|iphone|ipad|gmail).{0,60}`,
  `lähetetty .{1,50}(?:iphonesta|ipadista|puhelimesta|laitteesta|androidista|outlookista|sta|stä|lta|ltä)[.!]?`,
  // Russian, Ukrainian, Czech, Hungarian, Turkish, Greek, Romanian
  `отправлено (?:с|из|от) .{1,60}`,
  `надіслано (?:з|із|зі|від) .{1,60}`,
  `(?:odesláno|posláno|odoslané) (?:z|ze|pomocí|přes) .{1,60}`,
  `.{1,40}(?:készülékről|iphone-omról|telefonomról|ipademről|iphone-ról) küldve[.!]?|küldve .{1,30}(?:iphone|ipad|telefon|android|outlook).{0,30}`,
  `.{1,50}(?:['’]?(?:dan|den|umdan|ımdan|imdan|tan|ten)) gönderildi[.!]?`,
  `(?:στάλθηκε|εστάλη) από .{1,60}`,
  `trimis (?:de pe|din|de la|prin) .{1,60}`,
  // Japanese, Chinese, Korean
  `.{0,40}(?:iphone|ipad|android|スマートフォン|携帯|outlook|yahoo|gmail|windows|galaxy|xperia).{0,25}(?:から送信|より送信|から送信しました|から送信されました|で送信).{0,10}`,
  `(?:发自|發自|来自|從我的|从我的|由我的|我的|發送自|发送自|寄自).{0,40}(?:iphone|ipad|android|手机|手機|outlook|foxmail|网易|qq|小米|华为|傳送|发送|yahoo|邮箱|mail|samsung|三星).{0,30}`,
  `(?:나의|내) .{0,30}(?:에서|으로) (?:보냄|전송|보낸 메일|보냈습니다).{0,10}|.{0,20}(?:iphone|ipad|갤럭시|galaxy|android|outlook).{0,20}에서 (?:보냄|전송됨|보낸 메일|보냈습니다).{0,10}`,
  // Arabic, Hebrew
  `(?:أُرسلت|أرسلت|مرسل|تم الإرسال|أرسل) من .{1,60}`,
  `נשלח (?:מה|מ|מאת|באמצעות).{1,60}`,
  // "Get Outlook for iOS" and similar advertisements
  `(?:get|download) (?:outlook|spark|bluemail|blue mail|mailspring|yahoo|aol|mymail|my mail|edison).{0,60}`,
  String.raw`(?:holen sie sich|hol dir|laden sie|télécharge[rz]|obtenir|obtene[rz]|obtén|consigue|descarg\w{1,6}|obter|obtenha|baixar|baixe|ottieni|scarica|pobierz|hämta|skaffa|få|hent|hanki|lataa|скачать|загрузить|получить|отримати|завантажити|získat|získejte|stáhnout|letöltés|λήψη|obțineți|obține|descărcați|获取|取得|下載|下载|download|verkrijg|احصل على|קבל(?:ת)? את|השג את) .{0,25}outlook.{0,40}`,
  `(?:iphone|ios|android|mac).{0,4}(?:版|用|용).{0,4}outlook.{0,20}`,
  `outlook (?:für|voor|pour|para|per|for|til|till|för|pro|for) .{1,20} (?:beziehen|herunterladen|laden|holen|downloaden|ophalen|verkrijgen|edinin|indirin|letöltése).{0,10}`,
  `(?:(?:ios|android|mac) için )?outlook(?:['’]u)? ?.{0,20}(?:edinin|indirin|beszerzése|다운로드|を入手|を取得|가져오기).{0,10}`,
];

const MOBILE_SIGNATURE = new RegExp(`^(?:${PATTERNS.join('|')})$`, 'iu');
/** `<Sent from BlackBerry>`, `(via my tablet)`. */
const BRACKETS = /^[<([]{1,3}|[>)\]]{1,3}$/g;
/** `- Sent from my phone -`. Dashes on one side alone are a list. */
const BETWEEN_DASHES = /^[-–—~]{1,5} ?(.{4,150}?) ?[-–—~]{1,5}$/u;
/** Links within the line: `Get Outlook for iOS<https://aka.ms/o0ukef>`. */
const LINKS = /[[(<]\s*(?:https?|mailto):[^\s<>\])]{0,200}\s*[\])>]/gi;

export function isMobileSignature(line: string): boolean {
  if (line.length > 400) return false;
  const words = line
    .replace(LINKS, '')
    .replace(/[*_]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
    .replace(BRACKETS, '')
    .replace(BETWEEN_DASHES, '$1')
    .trim();
  return words.length >= 4 && words.length <= MAX_CHARACTERS && MOBILE_SIGNATURE.test(words);
}
