"""The words that `words` and `sentences` know, as tables: small words, spellings, measures, verbs of taste. Data only."""

from __future__ import annotations

import re


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
TO_SIMPLIFIED = str.maketrans(dict(zip(_SHAPES[::2], _SHAPES[1::2], strict=True)))

SUBJECTS = table(
    """i am is are be 'm 're im do does did don doesn didn isn aren was were can will they customer user my
    ich bin ist sind mein meine yo soy es son estoy está mi"""
)
SELF = table("am 'm im bin soy estoy")
"""With these a look is the customer's own: "I am tall"."""
COUNTRIES = table("us uk eu")
"""A measure beside a number, else a place."""
