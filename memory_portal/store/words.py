"""Words of a short text. In: a text as it was said. Out: its words, folded to search (`tokens`) or to compare (`read`).
Searching may fold much, comparing only what cannot change a meaning; nothing folded is ever stored.
May be imported by dedupe and recall; imports sanitise and snowballstemmer. Long for its tables of words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import snowballstemmer

from memory_portal.store.sanitise import fold

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

CACHED_TEXTS = 2_000
CACHED_WORDS = 10_000

T = TypeVar("T")
_of_texts: list[_lru_cache_wrapper[Any]] = []


def kept(size: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """`lru_cache` for what is worked out of customers' texts, so that `forget_texts` reaches it."""

    def keep(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(size)(function)
        _of_texts.append(cached)
        return cached

    return keep


def forget_texts() -> None:
    """Empty every cache of this process that holds customers' words; reading a fact again costs a fraction of a millisecond."""
    for cached in _of_texts:
        cached.cache_clear()


def table(words: str) -> frozenset[str]:
    """Words written one after another."""
    return frozenset(words.split())


def _spellings(rows: str) -> dict[str, str]:
    """`kept other other, kept other`: what every other spelling is read as."""
    return {other: row.split()[0] for row in rows.split(",") for other in row.split()[1:]}


# Words that say nothing to a search.
STOP = {
    "english": table(
        """a an the and or but if of at by for with about to from in on off over under is are was were be been being
        am do does did doing have has had having i me my mine we us our you your he him his she her it its they them
        their what which who whom this that these those when where why how s t d m ll re ve can will just not no so
        than too very as any some all there here would could should may might also really please don doesn didn isn
        aren wasn weren won wouldn couldn shouldn hasn haven hadn"""
    ),
    "german": table(
        """der die das den dem des ein eine einen einem einer eines und oder aber ich mich mir mein meine meinen
        meiner du dein er sie es wir uns unser ihr ihre sein seine ist sind bin war waren hat habe haben im in am an
        auf zu zum zur von vom mit bei für nicht kein keine keinen auch sehr nur noch als wie was wer wo wann dass"""
    ),
    "spanish": table(
        """el la los las un una unos unas y o u pero yo me mi mis tu tus él ella le les lo se su sus nos es son soy
        era está están estoy ha he han en de del al a con por para que no ni si como muy más también qué quién dónde
        cuándo cuál"""
    ),
}
# Words that give a language away although a search should keep them.
HINTS = {
    "english": table("likes prefers wears allergic wants avoids"),
    "german": table(
        "mag trägt trage bevorzugt bevorzuge allergisch gegen isst esse kauft kaufe mehr größe keinen ohne"
    ),
    "spanish": table(
        "gusta gustan prefiere prefiero alérgica alérgico lleva llevo usa uso come como evita evito talla ya sin"
    ),
}

# Words without which a short statement about a customer means the same: articles, the customer as subject, the copula.
UNSAID = {
    "english": table(
        """a an the i me my mine myself they their theirs customer user im ive there to of really also actually still
        please currently now"""
    ),
    "german": table(
        """der die das den dem des ein eine einen einem einer eines ich mir mich mein meine meinen meiner meinem bin ist
        sind kunde kundin wirklich auch bitte derzeit zurzeit jetzt"""
    ),
    "spanish": table(
        """el la los las un una unos unas yo a me mí mi mis le su sus soy es son estoy está están cliente clienta
        realmente también actualmente ahora de del"""
    ),
}
HEDGES = table("really actually wirklich realmente")
"""Unsaid, but not after a negation: "not really"."""
OWNING = table("have has 've own owns keep keeps got hat habe tiene tengo")
ARTICLES = table("a an one ein eine einen un una")
"""After a word of owning these are a number: who has a dog has one."""
AMOUNTS = table("few little bit lot")
"""An article before these counts: a few are not few."""
NOT = "¬"
ONCE = "«once»"
"""Marks what was so: who used to live in a town may live elsewhere by now."""
DONE = "«done»"
"""Marks a past form: lived is not lives, though smoked may say how fish is liked."""
NEGATIONS = {
    "english": table("not no nor neither non 't cannot dont doesnt isnt arent cant wont"),
    "german": table("nicht kein keine keinen keinem keiner keines"),
    "spanish": table("no ni"),
}
PAST = {
    "english": table("was were wasn weren did didn"),
    "german": table("war waren"),
    "spanish": table("era eran"),
}
COPULA = table("am is are be been being 's 'm 're isn aren")
RELATIVE = table("that which who")

# Two spellings, or two names, of one thing. A row is here only where nobody would hear a difference in what is wanted.
SPELLINGS = {
    "english": _spellings(
        """color colour, gray grey, favorite favourite, flavor flavour, organize organise, center centre, meter
        metre, liter litre, jewelry jewellery, pajama pyjama, fiber fibre, mom mum mother, dad father, child kid,
        woman lady, tv television telly, sofa couch, fridge refrigerator, bike bicycle, phone telephone, photo
        photograph, movie film, eggplant aubergine, zucchini courgette, cilantro coriander, diaper nappy, stroller
        pram pushchair, and &, vacation holiday, buy purchase, big large, maximum max, minimum min, yogurt yoghurt, 2
        two, 3 three, 4 four, 5 five, 6 six, 7 seven, 8 eight, 9 nine, 10 ten, 11 eleven, 12 twelve, kg kilo kilogram
        kilogramme, g gram gramme, cm centimeter centimetre, $ dollar usd, € euro eur, % percent"""
    ),
    "german": _spellings(
        "und &, esse isst, kg kilo kilogramm, € euro eur, $ dollar, 2 zwei, 3 drei, 4 vier, 5 fünf, 6 sechs"
    ),
    "spanish": _spellings("y e &, usa uso, kg kilo, € euro eur, $ dólar, 2 dos, 3 tres, 4 cuatro, 5 cinco, 6 seis"),
}
IRREGULAR = _spellings(
    """have has, do does, go goes, child children kids, man men, woman women, foot feet, tooth teeth, mouse mice,
    knife knives, wife wives, life lives, wolf wolves, loaf loaves, leaf leaves, half halves, scarf scarves, shelf
    shelves, person people, lie lying, die dying, tie tying, could couldn, would wouldn,
    should shouldn, have hasn haven"""
)
IRREGULAR_PAST = _spellings(
    """have had, buy bought, eat ate eaten, wear wore worn, drink drank drunk, go went gone, get got gotten, give
    gave given, take took taken, make made, say said, tell told, grow grew grown, know knew known, think thought,
    find found, sell sold, keep kept, leave left, run ran, see saw seen, drive drove driven, ride rode ridden, hold
    held, throw threw thrown, write wrote written, sing sang sung, feed fed, break broke broken, choose chose chosen"""
)
# Nouns in -ing, which are not the verb: bedding is no bed.
WHOLE = table(
    """bedding clothing wedding evening morning building meeting ceiling lining padding heating lighting seating
    packaging shipping pricing fitting filling topping dressing icing seasoning stuffing earring pudding nothing
    something anything everything during spring string"""
)
# Verbs (and the like) of taste, use or need: with one of them even a short value says something by itself.
PREDICATES = {
    "english": (
        """like love hate prefer enjoy want need avoid eat drink wear buy use own have take live work cook drive ride
        play read watch collect allergic intolerant sensitive"""
    ),
    "german": ("mag liebt hasst bevorzugt vermeidet trägt isst trinkt kauft braucht allergisch verträgt"),
    "spanish": ("gusta prefiere odia evita lleva usa come bebe compra necesita alérgico tolera"),
}
PREDICATES_ZH = frozenset("喜爱厌怕吃喝穿用买要想住戴看听敏是有偏忌")
NEGATIVE_ZH = frozenset("不没未无非别")
# What a number is counted in: where it changes, the old figure no longer holds.
MEASURES = """
    eu us uk size cm mm m inch in kg g lb pound oz l ml $ € £ ¥ % chf gbp
    under over below above least most maximum minimum limit budget up than height weight waist width length
    größe maximal höchstens mindestens unter über
    talla bajo menos hasta
    码 号 元 块 岁 斤 克 米 寸 以 超 过 高 重 尺
"""
SIZES = table("xxs xs s m l xl xxl xxxl 2xl 3xl")
# Words that carry no subject of their own.
SMALL = """
    in on at for with without from by about as if when than or and but so very too much many more most less least all
    some any every each both only just never always often sometimes usually could will would should must may might not
    he she we it this that these those ones one him her us them his its our your can do did
    mit ohne für gegen auf bei im in am an von zu oder als nur sehr mehr nie immer er wir es
    con sin para por en como o que muy más menos solo nunca siempre lo
"""
POINTERS = table("it this that these those one ones them es lo")
# Looks, sizes and tastes: "likes it black" is about whatever the key names.
ATTRIBUTES = """
    black white red blue green yellow pink purple brown gray beige navy dark light bright small medium large tiny tall
    short long wide narrow slim loose tight soft firm hard hot cold warm cool iced sweet dry strong weak mild plain new
    old cheap thick thin rare fresh
    schwarz weiß rot blau grün klein groß eng weit warm kalt süß
    negro blanco rojo azul verde pequeño grande
"""

# Chinese: what may be left unsaid, whole words to leave alone, one wording for each of a few things that have two.
ZH_UNSAID = table(
    """请问 谢谢 您好 到底 究竟 其实 真的 现在 目前 如今 是 我的 我们的 的 了 喔 哦 啊 呀 嘛 啦 吧 呢 哈
    能够 可以 能 会 请 儿 一下"""
)
ZH_WHOLE = table(
    """特别 别人 区别 性别 分别 类别 级别 个别 别墅 告别 别的 目的 的士 的确 了解 受不了 罢了 了不起 会议 会员 机会 社会
    聚会 约会 晚会 宴会 协会 是不是 是否 但是 还是 可是 只是 总是 于是 而是 就是 或是 要是 跟踪 参与 与其 及时 以及
    来得及 涉及 普及 可能 功能 性能 能量 能源 智能 节能 请客 申请 邀请 儿子 女儿 儿童 婴儿 幼儿 少儿
    请假 请求"""
)
ZH_SPELLINGS = _spellings(
    """什么 啥, 怎么 如何 怎样 怎麽 咋, 哪里 哪儿 何处, 为什么 为何 为啥, 喜 喜欢 喜爱, 厌 讨厌 厌恶, 爸爸 父亲 老爸,
    妈妈 母亲 老妈, 自行车 单车 脚踏车, 土豆 马铃薯, 番茄 西红柿, 酸奶 优格, 出租车 计程车, 电脑 计算机, 软件 软体,
    网络 网路, 不要 别, 没 没有, 不吃 饮食忌 忌食 忌吃 忌口, 你 您, 和 与 跟 及, 什么时候 何时 啥时候"""
)

# Han characters that differ between traditional and simplified writing only in shape: one of each, in turn.
_SHAPES = re.sub(
    r"\s",
    "",
    """
    愛爱礙碍辦办幫帮寶宝報报備备貝贝筆笔畢毕邊边變变標标錶表賓宾餅饼補补參参慘惨倉仓測测層层產产嘗尝長长場场廠厂車车
    徹彻塵尘襯衬稱称誠诚遲迟齒齿衝冲蟲虫醜丑處处觸触傳传創创純纯詞词從从錯错達达帶带單单膽胆當当黨党導导燈灯敵敌遞递
    點点電电調调訂订東东動动凍冻鬥斗獨独讀读對对隊队頓顿奪夺額额兒儿發发髮发煩烦範范販贩飯饭訪访飛飞費费紛纷豐丰風风
    鳳凤膚肤婦妇復复該该蓋盖趕赶剛刚鋼钢個个給给貢贡構构購购夠够顧顾關关觀观館馆慣惯廣广規规貴贵國国過过還还漢汉號号
    後后護护畫画話话懷怀壞坏歡欢環环換换貨货獲获機机積积極极際际濟济繼继記记計计紀纪價价駕驾艱艰間间簡简見见鑑鉴漸渐
    講讲將将獎奖醬酱腳脚膠胶較较節节結结緊紧進进經经驚惊淨净靜静舊旧舉举劇剧據据捲卷覺觉絕绝軍军開开顆颗課课褲裤塊块
    寬宽況况擴扩來来藍蓝覽览爛烂樂乐類类離离裡里裏里禮礼麗丽歷历曆历連连聯联臉脸練练煉炼糧粮涼凉兩两輛辆療疗獵猎鄰邻
    臨临靈灵領领劉刘龍龙樓楼錄录陸陆綠绿亂乱輪轮論论羅罗邏逻媽妈馬马嗎吗買买賣卖麥麦滿满貓猫貿贸門门們们夢梦麵面滅灭
    廟庙鳴鸣難难腦脑鬧闹內内鳥鸟農农濃浓諾诺歐欧盤盘賠赔噴喷貧贫頻频評评蘋苹憑凭齊齐騎骑啟启氣气棄弃簽签錢钱淺浅強强
    牆墙搶抢橋桥親亲輕轻傾倾請请窮穷區区驅驱權权勸劝確确讓让熱热認认軟软銳锐潤润賽赛傷伤燒烧紹绍設设紳绅聲声勝胜繩绳
    師师詩诗時时識识實实視视試试適适釋释壽寿獸兽書书輸输樹树屬属術术數数雙双誰谁稅税順顺說说絲丝飼饲鬆松蘇苏訴诉雖虽
    歲岁孫孙損损鎖锁臺台檯台態态談谈湯汤討讨題题體体條条鐵铁聽听廳厅頭头圖图團团襪袜彎弯灣湾萬万網网為为衛卫溫温聞闻
    問问臥卧無无務务誤误習习戲戏細细係系蝦虾嚇吓鮮鲜閒闲顯显現现縣县線线鄉乡詳详響响項项蕭萧曉晓寫写謝谢興兴鬚须許许
    續续選选學学訓训壓压鴨鸭亞亚煙烟鹽盐嚴严顏颜驗验陽阳養养樣样搖摇藥药爺爷業业頁页醫医億亿憶忆藝艺議议譯译異异陰阴
    銀银飲饮應应營营擁拥湧涌優优郵邮猶犹遊游魚鱼與与語语預预員员園园圓圆遠远願愿約约躍跃雲云運运雜杂載载讚赞擇择則则
    責责賊贼贈赠張张漲涨帳帐賬账這这針针診诊鎮镇陣阵證证織织職职執执紙纸製制質质鐘钟鍾钟種种眾众週周豬猪諸诸燭烛專专
    轉转裝装壯壮狀状準准資资總总縱纵組组鑽钻麼么沒没鹹咸薑姜鵝鹅雞鸡蔥葱檸柠蘿萝蔔卜筍笋鱈鳕鮭鲑鮪鲔蠔蚝殼壳會会乾干
    鹼碱滷卤燙烫頸颈腸肠腎肾癢痒濕湿潔洁殺杀餃饺餡馅鍋锅銅铜碼码櫃柜櫻樱慶庆壺壶諒谅賴赖擔担滾滚獅狮鬍胡澀涩濾滤灑洒
    礦矿穩稳窩窝競竞緣缘縮缩罷罢羨羡義义膩腻莊庄華华葉叶蓮莲薦荐衆众複复訊讯誇夸諮咨蹤踪遷迁鄭郑鄧邓釘钉鉛铅銷销鋒锋
    鋪铺鍵键鏡镜閉闭陳陈隨随險险隱隐霧雾韓韩韻韵頂顶飽饱飾饰餓饿騙骗髒脏鬱郁齡龄屆届傑杰僅仅兇凶劍剑勵励協协嘆叹墊垫
    壇坛奧奥孃娘寢寝審审嶼屿島岛彈弹徵征恆恒憐怜懶懒戰战攜携摺折撥拨擠挤敗败斷断晉晋曬晒橢椭殘残毀毁氈毡沖冲決决潛潜
    災灾爐炉牽牵狹狭瑪玛瓊琼畝亩癒愈癮瘾盜盗監监礎础祕秘禍祸禦御稈秆穫获築筑籃篮籤签紐纽紗纱級级紋纹納纳終终絨绒維维
    緒绪緩缓縫缝繡绣繪绘厭厌妳你廁厕廈厦懼惧憂忧戶户撿捡擋挡擾扰攝摄晝昼暫暂棗枣楊杨榮荣檢检櫥橱歸归汙污洩泄濱滨瀏浏
    瑣琐瘡疮瘋疯皺皱盡尽睜睁矯矫紅红編编繞绕罰罚罵骂聰聪肅肃脈脉腫肿臟脏舖铺艙舱莖茎菸烟薩萨蘭兰蘆芦虛虚虧亏蝕蚀蟻蚁
    蠟蜡誌志貼贴賀贺贏赢趙赵跡迹軌轨輔辅輩辈迴回釀酿鈔钞鈕钮鈣钙鈴铃銹锈鋁铝鋸锯鍊链鏈链鐲镯鑰钥閃闪闊阔階阶飄飘餘余
    饅馒饞馋骯肮鯨鲸鰻鳗鱸鲈鷄鸡黃黄齋斋龜龟侶侣俠侠偉伟側侧偵侦僱雇儀仪儘尽儲储劃划劑剂勁劲勻匀匯汇卻却吳吴呂吕啞哑
    喚唤嗆呛嗇啬嘔呕噁恶噸吨嚐尝囑嘱圍围塗涂墳坟壘垒夾夹奮奋妝妆姪侄娛娱嬌娇嬰婴寵宠屢屡峽峡幣币幾几庫库廢废徑径恥耻
    悅悦惱恼慚惭憲宪懸悬戀恋揀拣揚扬擊击擬拟攔拦敘叙斬斩於于暈晕暢畅桿杆槍枪樁桩欄栏淚泪渾浑湊凑滬沪澆浇澤泽瀉泻烏乌
    煥焕獻献疊叠痺痹盞盏瞞瞒碩硕磚砖禿秃穎颖竅窍竊窃粵粤統统絡络綁绑綜综緯纬纏缠罈坛羣群聖圣臘腊艦舰萊莱蕎荞蕩荡蘊蕴
    襲袭誕诞謎谜謹谨譜谱豎竖贊赞軸轴輯辑轎轿辭辞遺遗釣钓鈍钝銘铭鍛锻鎂镁閣阁隻只頌颂顫颤飆飙餌饵饑饥馴驯駐驻騷骚驕骄
    惡恶飢饥鬪斗
    """,
)
_TO_SIMPLIFIED = str.maketrans(dict(zip(_SHAPES[::2], _SHAPES[1::2], strict=True)))

# Scripts written without spaces between words, and Hangul, whose particles stick to the word.
_RUNS = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han, kana
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7a3"  # Thai, Lao, Burmese, Khmer, Hangul
)
# Python's \w knows no combining marks, without which words of Indic scripts fall apart.
_MARKS = "".join(chr(c) for c in range(0x300, 0x1E00) if unicodedata.category(chr(c))[0] == "M")
_LETTERS = rf"(?:(?![{_RUNS}\d_])\w)(?:(?![{_RUNS}\d_])[\w{_MARKS}])*"
_WORD = re.compile(rf"(?P<run>[{_RUNS}]+)|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>{_LETTERS})")


@kept(CACHED_TEXTS)
def tokens(text: str) -> tuple[str, ...]:
    """The words of `text` for searching, in order: stems of content words, numbers, Chinese characters and bigrams.

    Every word has its English stem without accents; in a text that reads as German or Spanish its stem there follows
    where it differs. So the same word is found whichever language a text is taken for.
    """
    matches = list(_WORD.finditer(fold(text)))
    language = _language([match[0] for match in matches])
    found: list[str] = []
    for match in matches:
        if match["run"]:
            run = simplified(match["run"])
            found += [*run, *(run[i : i + 2] for i in range(len(run) - 1))]
        elif match["number"]:
            found.append(match["number"])
        elif match["word"] not in STOP[language]:
            found += _stems(match["word"], language)
    return tuple(found)


def language(text: str) -> str:
    """english, german or spanish."""
    return _language([match[0] for match in _WORD.finditer(fold(text))])


def _language(words: list[str]) -> str:
    """The language whose small words a text has most of; English when in doubt."""
    counts = {name: sum(map(telling.__contains__, words)) for name, telling in _TELLING.items()}
    return max(counts, key=counts.__getitem__)


_TELLING = {name: STOP[name] | HINTS[name] for name in STOP}


@kept(CACHED_WORDS)
def _stems(word: str, language: str) -> tuple[str, ...]:
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not "\u0300" <= c <= "\u036f") or word
    return tuple(dict.fromkeys((_stem(bare, "english"), _stem(bare, language))))


def _stem(word: str, language: str) -> str:
    with _STEMMING:
        stem: str = _stemmer(language).stemWord(word)
    return stem


_STEMMING = Lock()
"""A stemmer holds the word it is at: two threads at one of them get each other's letters, or an IndexError."""


@lru_cache
def _stemmer(language: str) -> Any:
    return snowballstemmer.stemmer(language)


def _token(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<run>[{_RUNS}])|(?P<number>(?:(?<!\S)-)?\d+(?:[.,:/^-]\d+)*)|(?P<word>{letters})"
        r"|(?P<tail>(?<=\w)'[a-z]{1,2}\b)|(?P<stop>[,;.:()!?\n])|(?P<sign>[^\w\s])"
    )


_TOKEN, _ASCII_TOKEN = _token(_LETTERS), _token("[a-z]+")
SIGNS = "%‰#@&"
"""Punctuation that carries meaning in a short value; money, degrees, plus and emoji do so by their class."""
GESTURES = "~|"
"""Mathematical by class, in chat a mere gesture."""
BREAK = ","
PARTING = frozenset((BREAK, "and", "plus", "und", "sowie", "y", "和", "跟", "与", "及"))
_HYPHENED = re.compile(r"\b(e|t|x|wi)[- ](mail|shirt|ray|fi)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_HAN = re.compile("[\u3400-\u9fff]")
_ZH_GAP = re.compile("(?<=[\u3400-\u9fff])\\s+(?=[\u3400-\u9fff])")
_ZH_SUBJECT = re.compile("(?:(?<=^)|(?<=[\\s,.;!?]))我(?!们)")
_ZH_ALLERGY = re.compile("对([^,.;!?]{1,12}?)过敏")
_ZH = re.compile("|".join(sorted({*ZH_WHOLE, *ZH_UNSAID, *ZH_SPELLINGS}, key=len, reverse=True)))
_ZH_REWRITE = ZH_SPELLINGS | dict.fromkeys(ZH_UNSAID, "")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says, as far as words can tell."""

    folded: str
    said: tuple[str, ...]
    """Words in order, with NOT and ONCE, numbers and signs; grammatical person, articles and punctuation are gone."""
    parts: tuple[tuple[str, ...], ...]
    """`said`, cut at commas, full stops and words for "and"."""
    sentence: bool
    """It has a verb or a subject."""
    stands: bool
    """It names what it is about, so that it says the same under any key."""


@kept(CACHED_TEXTS)
def read(text: str) -> Reading:
    """`text` as a Reading. Never raises; a text without a word says `()`."""
    folded = fold(text)
    joined = _HYPHENED.sub(r"\1\2", folded)
    pieces = _pieces(_chinese(joined) if _HAN.search(joined) else joined)
    language = _language(pieces)
    words = _inflected(pieces, language)
    said = tuple(word for word in words if word != BREAK)
    sentence = (
        not SUBJECTS.isdisjoint(pieces)
        or any(word in _PREDICATES or word in NEGATIVE_ZH for word in said)
        or bool(_ZH_SENTENCE.search(folded))
    )
    stands = _stands(said, sentence=sentence, self_said=not SELF.isdisjoint(pieces))
    return Reading(folded, said, _parts(words), sentence, stands)


@kept(CACHED_TEXTS)
def key_words(key: str) -> frozenset[str]:
    """The words of a key, in any order."""
    return frozenset(read(key.replace("_", " ")).said)


def opens_statement(word: str) -> bool:
    """Whether a part that begins so needs no subject from the part before it."""
    return word == NOT or word in _PREDICATES or word in NEGATIVE_ZH


def names(word: str) -> bool:
    """Whether a word of a Reading names something: it is no verb of taste, measure, size, look or small word."""
    return _weight(word) > 0


def simplified(text: str) -> str:
    return text.translate(_TO_SIMPLIFIED)


def _chinese(folded: str) -> str:
    """Chinese in simplified characters, without the particles, the subject and the modal verbs that may stay unsaid."""
    text = _ZH_GAP.sub("", simplified(folded))
    text = _ZH_SUBJECT.sub("", text)
    text = _ZH.sub(lambda found: _ZH_REWRITE.get(found[0], found[0]), text)
    return _ZH_ALLERGY.sub(r"\1过敏", text)


def _pieces(folded: str) -> list[str]:
    """Words, single characters of scripts without spaces, numbers, telling signs; BREAK for punctuation that parts."""
    found: list[str] = []
    for match in (_ASCII_TOKEN if folded.isascii() else _TOKEN).finditer(folded):
        piece = match[0]
        if match.lastgroup == "stop":
            found.append(BREAK)
        elif match.lastgroup == "number":
            found.append(piece.replace(",", "") if _THOUSANDS.fullmatch(piece) else piece)
        elif match.lastgroup != "sign" or _tells(piece):
            found.append(piece)
    return found


@kept(CACHED_WORDS)
def _tells(sign: str) -> bool:
    """Money, degrees, plus, emoji: signs without which a short value means something else."""
    return sign in SIGNS or (unicodedata.category(sign) in ("Sc", "Sm", "So") and sign not in GESTURES)


def _inflected(pieces: list[str], language: str) -> list[str]:
    """One form for each word: negation and past pulled out, spelling and inflection folded, the unsaid left out."""
    negations, english = NEGATIONS[language], language == "english"
    words: list[str] = []
    for before, piece, after in zip(["", *pieces], pieces, [*pieces[1:], ""], strict=False):
        if piece in negations:
            words += ["can", NOT] if piece in ("cannot", "cant") else [NOT]
        elif piece in PAST[language] or (piece == "used" and after == "to" and before not in COPULA):
            words += [ONCE, _IS]
        elif piece in ARTICLES and before in OWNING:
            words.append("1")
        elif english and piece in COPULA:
            words.append(_IS)
        elif english and piece in RELATIVE:
            words.append(_WHICH)
        elif not (_is_unsaid(piece, before, after, language) or _ends_negation(piece, before, after, language, words)):
            words += _word(piece, language)
    if _IS in words or _WHICH in words:
        words = _straight(words)
    return _allergic(words) if "allergy" in words else words


def _is_unsaid(piece: str, before: str, after: str, language: str) -> bool:
    if piece in ("do", "does"):
        return after == "not"
    if piece in ("don", "doesn"):
        return after == "'t"
    if piece == "got":
        return before in OWNING
    kept = (piece in HEDGES and before in NEGATIONS[language]) or after in AMOUNTS
    return piece in UNSAID[language] and not kept


def _ends_negation(piece: str, before: str, after: str, language: str, words: list[str]) -> bool:
    """No *longer*, not *any more*, kein Leder *mehr*, *ya* no: that it was so once adds nothing to its not being so."""
    if piece not in ("longer", "more", "any", "anymore", "mehr", "ya") or after in ("than", "als", "que"):
        return False
    if piece == "ya":
        return after in NEGATIONS[language]
    if piece in ("longer", "more") and before in NEGATIONS[language]:
        return True
    pair = (before, piece) == ("any", "more") or (piece, after) == ("any", "more")
    return NOT in words and (pair or piece in ("anymore", "mehr"))


_IS, _WHICH = "«is»", "«which»"


def _straight(words: list[str]) -> list[str]:
    """Passive and relative clauses turned: bothered by noise, noise bothers; fish that is raw, raw fish."""
    for at in range(len(words) - 3, 0, -1):
        ends = words[at + 3] if at + 3 < len(words) else BREAK
        if (
            words[at : at + 2] == [_WHICH, _IS]
            and _is_plain(words[at - 1])
            and _is_plain(words[at + 2])
            and ends in (BREAK, _IS)
        ):
            words = [*words[: at - 1], words[at + 2], words[at - 1], *words[at + 3 :]]
    for at in range(3, len(words)):
        if words[at] == "by" and words[at - 2] == DONE:
            words = _active(words, at)
            break
    return [word for word in words if word not in (_IS, _WHICH)]


def _is_plain(word: str) -> bool:
    return word not in (BREAK, NOT, ONCE, DONE, _IS, _WHICH)


def _active(words: list[str], by: int) -> list[str]:
    """The clause around `by` with its doer first; as it was when this is no passive."""
    start = max((at + 1 for at in range(by) if words[at] == BREAK), default=0)
    end = next((at for at in range(by, len(words)) if words[at] == BREAK), len(words))
    middle = by - 2
    while middle > start and words[middle - 1] in (_IS, NOT, ONCE):
        middle -= 1
    marks, doer = words[middle : by - 2], words[by + 1 : end]
    if _IS not in marks or not doer:
        return words
    tense = [DONE] if ONCE in marks else []
    negation = [NOT] if NOT in marks else []
    return [*words[:start], *doer, *tense, *negation, words[by - 1], *words[start:middle], *words[end:]]


def _allergic(words: list[str]) -> list[str]:
    """A nut allergy, and an allergy to nuts, as being allergic to nuts."""
    at = words.index("allergy")
    start = max((place + 1 for place in range(at) if words[place] == BREAK), default=0)
    denied = [word for word in words[start:at] if word == NOT]
    what = [word for word in words[start:at] if word not in (NOT, "have", "1")]
    return [*words[:start], *denied, "allergic", *what, *words[at + 1 :]]


@kept(CACHED_WORDS)
def _word(piece: str, language: str) -> tuple[str, ...]:
    """A word's base form; DONE before a past form, NOT inside a denying one."""
    if piece == "'ve":
        return ("have",)
    if len(piece) == 1 or not piece[0].isalpha():
        return (_SPELLINGS[language].get(piece, piece),)
    if language != "english":
        base = _base(piece, language)
        return (_SPELLINGS[language].get(base, base),)
    if past := IRREGULAR_PAST.get(piece):
        return (DONE, past)
    base = inflection(IRREGULAR.get(piece, piece))
    when, base = ((DONE,), base[:-1]) if base.endswith("+") else ((), base)
    base = _SPELLINGS[language].get(base, base)
    return (*when, NOT, "like") if base == "dislik" else (*when, base)


def _base(word: str, language: str) -> str:
    """The form that number and person leave alone."""
    if language == "english":
        return inflection(word)
    stem = _stem(word, language)
    return _GERMAN_PERSON.sub("", stem) if language == "german" else stem


_GERMAN_PERSON = re.compile("(?<=...)e?t$")


def inflection(word: str) -> str:
    """An English word without plural, -s, -ing or -ed; a past form ends in "+".

    A search stem folds too much to compare by: late and lately, custom and customer, organ and organic stay apart.
    """
    if word in WHOLE or not word.isascii():
        return word
    if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        return _settled(_singular(word))
    if word.endswith("ing") and len(word) > 5 and _VOWEL.search(word[:-3]):
        return _settled(_verb(word[:-3]))
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y+"
    if word.endswith("ed") and len(word) > 4 and not word.endswith("eed") and _VOWEL.search(word[:-2]):
        return _settled(_verb(word[:-2])) + "+"
    return _settled(word)


_VOWEL = re.compile("[aeiouy]")
_SHORT = re.compile("[^aeiou]*[aeiouy][^aeiouywx]")
"""One syllable with a short vowel, as in hop or lik: hoping has lost its e."""


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zzes")) and len(word) > 4:
        return word[:-2]
    return word[:-1]


def _verb(trunk: str) -> str:
    if len(trunk) > 3 and trunk[-1] == trunk[-2] and trunk[-1] not in "lsz":
        return trunk[:-1]
    return trunk + "e" if _SHORT.fullmatch(trunk) else trunk


def _settled(word: str) -> str:
    """Endings that inflection blurs: dance and danc(ing), movie and mov(ies), travel and travell(ing)."""
    if word.endswith("ie") and len(word) > 4:
        return word[:-2] + "y"
    if word.endswith("ll") and len(word) > 4:
        return word[:-1]
    if word.endswith("e") and len(word) > 4 and not _SHORT.fullmatch(word[:-1]):
        return word[:-1]
    return word


def _parts(words: list[str]) -> tuple[tuple[str, ...], ...]:
    parts: list[tuple[str, ...]] = []
    part: list[str] = []
    for word in [*words, BREAK]:
        if word not in PARTING:
            part.append(word)
        elif part:
            parts.append(tuple(part))
            part = []
    return tuple(parts)


def _stands(said: tuple[str, ...], *, sentence: bool, self_said: bool) -> bool:
    """Whether enough is named: an object beside the verb, or two words; after a pointer to nothing ("it") more."""
    least, weight = 1 if sentence else 4, 0
    measured = any(word[0].isdigit() for word in said)
    for word, after in zip(said, (*said[1:], ""), strict=False):
        if word in POINTERS and not weight and not (word == "one" and after and after not in _SMALL):
            least = 4
        elif (self_said and word in _ATTRIBUTES) or (not measured and word in COUNTRIES):
            weight += 2
        else:
            weight += _weight(word)
    return weight >= least


@kept(CACHED_WORDS)
def _weight(word: str) -> int:
    """2 for a word that names something, 1 for a Chinese character that does."""
    if word in _WEIGHTLESS or word in _PREDICATES or word in NEGATIVE_ZH or word[0].isdigit():
        return 0
    return 1 if _HAN.match(word) else 2 if len(word) > 1 else 0


def _in_base_form(spellings: dict[str, str], language: str) -> dict[str, str]:
    """The table as looked up: plurals and verb forms of either spelling are found as well."""
    kept = {other: _base(word, language) for other, word in spellings.items()}
    return kept | {_base(other, language): word for other, word in kept.items()}


_SPELLINGS = {language: _in_base_form(rows, language) for language, rows in SPELLINGS.items()}


def bases(words: str) -> frozenset[str]:
    """The base forms of a table's words, in every language the table may be in."""
    return frozenset(form for word in words.split() for language in STOP for form in (word, _word(word, language)[-1]))


SUBJECTS = table(
    """i am is are be 'm 're im do does did don doesn didn isn aren was were can will they customer user my
    ich bin ist sind mein meine yo soy es son estoy está mi"""
)
SELF = table("am 'm im bin soy estoy")
"""With these a look is the customer's own: "I am tall"."""
COUNTRIES = table("us uk eu")
"""A measure beside a number, else a place."""
_ZH_SENTENCE = re.compile("[我是有你]")
_PREDICATES = PREDICATES_ZH.union(*(bases(table) for table in PREDICATES.values()))
_MEASURES = bases(MEASURES)
_SMALL = bases(SMALL)
_ATTRIBUTES = bases(ATTRIBUTES)
_WEIGHTLESS = _SMALL | _ATTRIBUTES | _MEASURES | SIZES | {NOT, ONCE, DONE, BREAK}


def is_measure(word: str) -> bool:
    return word in _MEASURES
